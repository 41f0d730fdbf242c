"""The stages of a run: which days, read how, written where, and how each went."""
