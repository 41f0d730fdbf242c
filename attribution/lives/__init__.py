"""Lives: what two sources say of one pod or node, and what nobody saw."""
