"""Floor 5: commands, the wiring of settings to collaborators, and the renderers."""
