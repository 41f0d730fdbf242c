"""Lines that pay for no node: by what lies in, mounts, writes to or sends through it."""
