"""Node-hours: what a node could hold, who held it, and how its price falls to them."""
