"""A simulated cluster with a known truth: bills, Kubernetes objects and Prometheus series."""
