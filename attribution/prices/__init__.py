"""Prices where no bill names one, and prices beside the bill."""
