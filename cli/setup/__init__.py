"""What ``init`` probes, asks and writes."""
