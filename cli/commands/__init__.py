"""One thin file per command: parse, call, hand over."""
