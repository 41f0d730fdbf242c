"""Floor 1: table schemas, money, windows, the Delta store and the settings model."""
