"""Lines of the bill, and the nodes that they pay for."""
