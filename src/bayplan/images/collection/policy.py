"""When images are collected, and down to what: the kubelet's thresholds and ages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class CollectionPolicy:
    """Above `high_percent` of the disk images are removed until `low_percent` is reached."""

    high_percent: int = 85
    low_percent: int = 80
    minimum_age: timedelta = timedelta(minutes=2)
    maximum_age: timedelta = timedelta(0)
    """Images unused for longer go whatever the disk says; 0 switches this off."""

    def __post_init__(self) -> None:
        for name, value in (("high", self.high_percent), ("low", self.low_percent)):
            if not 0 <= value <= 100:
                raise ValueError(f"{name} threshold {value} is not between 0 and 100 percent")
        if self.low_percent > self.high_percent:
            raise ValueError(
                f"low threshold {self.low_percent} is above the high one, {self.high_percent}"
            )
        if min(self.minimum_age, self.maximum_age) < timedelta(0):
            raise ValueError("an image's minimum and maximum ages must not be negative")


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """The filesystem that holds the images."""

    capacity: int
    available: int

    @property
    def used_percent(self) -> int:
        """How full it is, rounded up to whole percents as the kubelet does."""
        return 100 - min(self.available, self.capacity) * 100 // self.capacity

    def bytes_to_free(self, policy: CollectionPolicy) -> int:
        """How much has to go to be at the low threshold; 0 below the high one."""
        if self.used_percent < policy.high_percent:
            return 0
        wanted = self.capacity * (100 - policy.low_percent) // 100
        return max(0, wanted - min(self.available, self.capacity))
