"""Feature gates: features that can be turned off, which restores the behaviour before them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

VOLUME_LIMIT_SCALING = "VolumeLimitScaling"
ATTACH_VOLUME_LIMIT = "AttachVolumeLimit"
RUNTIME_CLASS_IN_IMAGE_CRI_API = "RuntimeClassInImageCriApi"
QUEUE_ALLOCATION_GATE = "QueueAllocationGate"

DEFAULTS: Mapping[str, bool] = MappingProxyType(
    {
        VOLUME_LIMIT_SCALING: True,
        ATTACH_VOLUME_LIMIT: True,
        RUNTIME_CLASS_IN_IMAGE_CRI_API: True,
        QUEUE_ALLOCATION_GATE: True,
    }
)

_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


class GateError(ValueError):
    """An unknown gate, or one whose setting cannot be read."""


class FeatureGates:
    """The state of all gates; immutable, comparable and hashable."""

    __slots__ = ("_states",)

    def __init__(self, settings: Mapping[str, bool] | None = None) -> None:
        for name in settings or {}:
            _check_known(name)
        self._states: Mapping[str, bool] = MappingProxyType({**DEFAULTS, **(settings or {})})

    @classmethod
    def parse(cls, text: str) -> FeatureGates:
        """Parse a flag value such as `A=true,B=false`; other gates keep their defaults."""
        return cls(dict(_setting(part) for part in text.split(",") if part.strip()))

    def enabled(self, name: str) -> bool:
        """Return whether a gate is on."""
        return self._states[_check_known(name)]

    def with_gate(self, name: str, on: bool) -> FeatureGates:
        """Return these gates with one of them set."""
        return FeatureGates({**self._states, name: on})

    def as_dict(self) -> dict[str, bool]:
        """Return every gate and its state."""
        return dict(self._states)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureGates) and self._states == other._states

    def __hash__(self) -> int:
        return hash(frozenset(self._states.items()))

    def __repr__(self) -> str:
        states = ",".join(f"{name}={str(on).lower()}" for name, on in self._states.items())
        return f"FeatureGates({states})"


def _setting(part: str) -> tuple[str, bool]:
    name, equals, value = (piece.strip() for piece in part.partition("="))
    if not equals or value.lower() not in _BOOLEANS:
        raise GateError(f"feature gate {part.strip()[:80]!r}: write it as Name=true or Name=false")
    return _check_known(name), _BOOLEANS[value.lower()]


def _check_known(name: str) -> str:
    if name not in DEFAULTS:
        known = ", ".join(sorted(DEFAULTS))
        raise GateError(f"unknown feature gate {name[:80]!r}; known gates: {known}")
    return name
