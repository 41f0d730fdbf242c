"""Nodes and pods: lives, states, requests, owners, labels and volumes."""
