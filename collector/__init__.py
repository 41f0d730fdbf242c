"""Floor 2: one module per source of facts, and the simulator. Writes facts, reads no costs."""
