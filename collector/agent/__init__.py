"""The agent: it watches the pods and nodes of a cluster and keeps what they were, and when.

Listing a cluster once a day misses every pod that is deleted before; a watch misses none. What it
tells goes into the same tables, in the same form, with ``interval_seconds`` 0: watched all along.
"""
