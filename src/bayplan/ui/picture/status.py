"""The status ConfigMap of an autoscaler, Cluster Autoscaler's or ours.

It is untrusted input: invalid fields are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from bayplan.ui import texts
from bayplan.ui.picture.groups import GroupFacts
from bayplan.ui.tables import Row

if TYPE_CHECKING:
    from bayplan.base.values import JsonValue

NAMESPACE, NAME = "kube-system", "cluster-autoscaler-status"
SOURCE = "autoscaler status"
MAX_LENGTH = 1 << 20
"""No ConfigMap is larger."""
MAX_GROUPS = 2000


@dataclass(frozen=True, slots=True)
class AutoscalerStatus:
    """The fields of a status that are shown."""

    time: str = ""
    message: str = ""
    scale_up: str = ""
    scale_down: str = ""
    groups: tuple[Mapping[str, object], ...] = ()

    @classmethod
    def of(cls, config_map: Mapping[str, object]) -> AutoscalerStatus:
        """Parse the status in a ConfigMap."""
        plain = _plain(_text(_section(config_map, "data").get("status")))
        wide, groups = _section(plain, "clusterWide"), plain.get("nodeGroups")
        return cls(
            _text(plain.get("time")),
            _text(plain.get("message")),
            _text(_section(wide, "scaleUp").get("status")),
            _text(_section(wide, "scaleDown").get("status")),
            tuple(one for one in groups[:MAX_GROUPS] if isinstance(one, dict))
            if isinstance(groups, list)
            else (),
        )

    def facts(self) -> Iterator[GroupFacts]:
        """Yield the facts of its groups."""
        for one in self.groups:
            health = _section(one, "health")
            if name := _text(one.get("name")):
                yield GroupFacts(
                    name,
                    SOURCE,
                    min=_count(health.get("minSize")),
                    max=_count(health.get("maxSize")),
                    target=_count(health.get("cloudProviderTarget")),
                )

    def row(self, steps: list[JsonValue]) -> Row:
        """Return the last plan, as far as the status has it."""
        backoff = [
            f"{_text(one.get('name'))}: backing off"
            for one in self.groups
            if _section(one, "scaleUp").get("status") == "Backoff"
        ]
        parts = [f"scale-up: {self.scale_up}", f"scale-down: {self.scale_down}", self.message]
        note = "; ".join(one for one in (*parts, *backoff) if one and not one.endswith(": "))
        return [
            "last",
            "Last plan",
            texts.name(self.time),
            steps,
            [],
            [],
            None,
            texts.line(note),
        ]


def _plain(text: str) -> Mapping[str, object]:
    if not text or len(text) > MAX_LENGTH or "&" in text or "*" in text:
        return {}  # a status has no aliases, and aliases can be used to exhaust memory
    try:
        found = yaml.load(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _section(plain: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = plain.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value) if value is not None else ""


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 1 << 31 else None
