"""What a run came to, in numbers, reckoned from its changes as they happen: O(changes)."""

from bayplan.lab.measuring.meter import Meter
from bayplan.lab.measuring.series import Grid, Measured, ScaleEvent

__all__ = ["Grid", "Measured", "Meter", "ScaleEvent"]
