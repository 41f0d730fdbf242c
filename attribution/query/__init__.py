"""Asking the books: costs of a window by keys."""
