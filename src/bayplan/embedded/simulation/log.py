"""The log of a run: a line for every change, and a digest of all changes.

A line has the time, the object, the change, and those of a few facts that it changed: phase, node,
conditions, taints, counts; for an event its message. The digest covers the time, the resource
version, the object and its bytes, so that two runs with equal digests are equal to the byte. The
bytes of objects with keys and certificates are left out, since no seed determines them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import TextIO

import msgspec

from bayplan.embedded.apiserver.store.entry import StoreEntry
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.kube.meta import Struct


class _Condition(Struct):
    type: str = ""
    status: str = ""
    message: str | None = None

    def text(self) -> str:
        """Whether it holds, and why not."""
        detail = f" ({self.message})" if self.message and self.status != "True" else ""
        return " ".join(f"{self.status}{detail}".split())


class _Taint(Struct):
    key: str = ""
    effect: str = ""


class _Spec(Struct):
    node_name: str | None = None
    replicas: int | None = None
    unschedulable: bool | None = None
    taints: list[_Taint] | None = None
    volume_name: str | None = None
    scheduling_gates: list[object] | None = None


class _Status(Struct):
    phase: str | None = None
    attached: bool | None = None
    ready_replicas: int | None = None
    active: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    conditions: list[_Condition] | None = None


class _About(Struct):
    kind: str = ""
    namespace: str = ""
    name: str = ""


class _EventFacts(Struct):
    spec: _Spec | None = None
    status: _Status | None = None
    involved_object: _About | None = None
    reason: str | None = None
    message: str | None = None
    count: int | None = None


_decode = msgspec.json.Decoder(_EventFacts).decode


def describe_change(change: WatchCacheEvent) -> str:
    """Return the facts that a change changed; empty if there are none to log."""
    if change.deleted:
        return ""
    after = _facts(change.entry)
    before = _facts(change.previous) if change.previous is not None else {}
    news = [f"{name} {after[name]}" for name in after if after[name] != before.get(name)]
    gone = [f"no {name}" for name in before if name not in after]
    return ", ".join(news + gone)


def _facts(entry: StoreEntry) -> dict[str, str]:
    try:
        fields = _decode(entry.data)
    except msgspec.DecodeError:
        return {}  # a kind whose fields have other types
    if fields.involved_object is not None:
        return _event(fields, fields.involved_object)
    return _of_spec(fields.spec or _Spec()) | _of_status(fields.status or _Status())


def _event(event: _EventFacts, about: _About) -> dict[str, str]:
    place = f"{about.namespace}/{about.name}".removeprefix("/")
    times = f" ({event.count} times)" if event.count and event.count > 1 else ""
    text = f"of {about.kind} {place}: {event.message}{times}"
    return {event.reason or "Event": " ".join(text.split())}


def _of_spec(spec: _Spec) -> dict[str, str]:
    taints = ", ".join(f"{one.key}:{one.effect}" for one in spec.taints or ())
    return _non_empty(
        node=spec.node_name,
        replicas=spec.replicas,
        volume=spec.volume_name,
        unschedulable=spec.unschedulable or None,
        taints=f"[{taints}]" if taints else None,
        gates=len(spec.scheduling_gates or ()) or None,
    )


def _of_status(status: _Status) -> dict[str, str]:
    counts = _non_empty(
        phase=status.phase,
        attached=status.attached,
        ready=status.ready_replicas,
        active=status.active,
        succeeded=status.succeeded,
        failed=status.failed,
    )
    return counts | {one.type: one.text() for one in status.conditions or ()}


def _non_empty(**facts: object) -> dict[str, str]:
    return {name: str(value) for name, value in facts.items() if value not in (None, "")}


_WORDS = {"ADDED": "created", "MODIFIED": "changed", "DELETED": "deleted"}

_WITH_KEYS = frozenset(
    {
        "secrets",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
    }
)


class RunLog:
    """Logs the changes of a store."""

    def __init__(self, now: Callable[[], float], out: TextIO | None = None) -> None:
        self._now = now
        self._out = out
        self._digest = hashlib.sha256()
        self.lines = 0
        self.counts: Counter[str] = Counter()

    def observe(self, change: WatchCacheEvent) -> None:
        """Log a change."""
        key, now = change.entry.key, self._now()
        data = b"" if key.storage in _WITH_KEYS else change.entry.data
        content = hashlib.sha256(data).hexdigest()[:16]
        place = f"{key.namespace}/{key.name}" if key.namespace else key.name
        exact = f"{now:.3f} {change.revision} {change.type} {key.storage} {place} {content}\n"
        self._digest.update(exact.encode())
        self.lines += 1
        self.counts[f"{change.type} {key.storage}"] += 1
        if self._out is not None:
            facts = describe_change(change)
            what = f"{_WORDS[change.type]} {key.storage} {place}{facts and ': '}{facts}"
            self._out.write(f"{_moment(now)} {what} [{change.revision} {content}]\n")

    @property
    def digest(self) -> str:
        """Return the digest of all changes so far."""
        return self._digest.hexdigest()


def _moment(seconds: float) -> str:
    """Return days, hours, minutes and seconds since the start."""
    minutes, left = divmod(round(seconds, 3), 60)
    hours, minutes = divmod(int(minutes), 60)
    days, hours = divmod(hours, 24)
    return f"{days}d {hours:02}:{minutes:02}:{left:06.3f}"
