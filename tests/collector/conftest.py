"""What the tests of the collectors share."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes says nothing where others use the machine too.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
