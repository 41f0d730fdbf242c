"""From raw samples to what they say: without copies, as runs, steps and proven stretches."""
