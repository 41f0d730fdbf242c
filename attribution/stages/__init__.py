"""What closing a day goes through, in order; each stage is a pure function with a named result."""
