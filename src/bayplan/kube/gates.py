"""Feature gates: named behaviours that can be switched off to get exactly what was before them."""

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

_WORDS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


class GateError(ValueError):
    """An unknown gate, or one whose setting cannot be read."""


class FeatureGates:
    """Which gates are on; immutable, equal by what it says."""

    __slots__ = ("_states",)

    def __init__(self, settings: Mapping[str, bool] | None = None) -> None:
        for name in settings or {}:
            _known(name)
        self._states: Mapping[str, bool] = MappingProxyType({**DEFAULTS, **(settings or {})})

    @classmethod
    def parse(cls, text: str) -> FeatureGates:
        """Gates as a flag has them: `A=true,B=false`; what is not named keeps its default."""
        return cls(dict(_setting(part) for part in text.split(",") if part.strip()))

    def enabled(self, name: str) -> bool:
        """Whether the gate is on."""
        return self._states[_known(name)]

    def with_gate(self, name: str, on: bool) -> FeatureGates:
        """The same gates with one of them set."""
        return FeatureGates({**self._states, name: on})

    def as_dict(self) -> dict[str, bool]:
        """Every gate and its state."""
        return dict(self._states)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureGates) and self._states == other._states

    def __hash__(self) -> int:
        return hash(frozenset(self._states.items()))

    def __repr__(self) -> str:
        said = ",".join(f"{name}={str(on).lower()}" for name, on in self._states.items())
        return f"FeatureGates({said})"


def _setting(part: str) -> tuple[str, bool]:
    name, equals, word = (piece.strip() for piece in part.partition("="))
    if not equals or word.lower() not in _WORDS:
        raise GateError(f"feature gate {part.strip()[:80]!r}: write it as Name=true or Name=false")
    return _known(name), _WORDS[word.lower()]


def _known(name: str) -> str:
    if name not in DEFAULTS:
        known = ", ".join(sorted(DEFAULTS))
        raise GateError(f"unknown feature gate {name[:80]!r}; known are {known}")
    return name
