"""How busy cards, cores, memory and networks were, per quarter of an hour."""
