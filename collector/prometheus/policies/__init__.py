"""Policies and states of jobs, queues and autoscalers, as series tell them."""
