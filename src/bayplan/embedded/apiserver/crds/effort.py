"""How much work one object may be to check and to fill in.

Schemas are written by strangers too: alternatives in alternatives, patterns over long texts and
defaults in long lists can make a small request cost more than a server has. Work is counted as it
is done, and an object that is too much of it is refused.
"""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import bad_request

MOST = 200_000
"""Steps of about five microseconds."""
MATCHED_IN_A_STEP = 1000
"""Letters times instructions of a pattern."""
CHOICES_IN_A_STEP = 100
BYTES_IN_A_STEP = 100


class Effort:
    """Counts the work that an object is."""

    __slots__ = ("_left",)

    def __init__(self, most: int = MOST) -> None:
        self._left = most

    def spend(self, steps: int = 1) -> None:
        """Count some work; 400 when it has become too much."""
        self._left -= steps
        if self._left < 0:
            raise bad_request("the object takes too much work to be checked against its schema")
