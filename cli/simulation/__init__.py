"""Simulated clusters: their files, and the demo that closes them."""
