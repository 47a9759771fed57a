"""What every test relies on: property tests judge behaviour, never how long it took."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("bayplan", deadline=None)
settings.load_profile("bayplan")
