"""Meters that the server summarises per quarter of an hour, each with the proof that it may.

A slot's statistics are taken from the server where small answers beside them prove that they are
those of the samples as ``clean`` and ``slots`` would have them: nothing implausible among them, no
counter that starts again, no hole, one scraper, one pod. Whatever fails is read sample by sample.
"""
