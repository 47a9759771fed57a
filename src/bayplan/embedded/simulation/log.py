"""The log of a run: a line for every change, for people, and a digest of all, for machines.

Of every object a few facts are told: phase, node, conditions, taints, counts; of an event what it
says. Only those that a change changed are worth a word.

A line says when, what happened to which object, and what that came to. The digest covers the time,
the resource version, the object and its bytes, so that two runs whose digests are the same are the
same to the byte; only of objects that hold keys and certificates, which no seed can give, the bytes
are left out.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import TextIO

import msgspec

from bayplan.embedded.apiserver.store.entry import Entry
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.kube.meta import Struct


class _Condition(Struct):
    type: str = ""
    status: str = ""
    message: str | None = None

    def text(self) -> str:
        """Whether it holds, and why not."""
        why = f" ({self.message})" if self.message and self.status != "True" else ""
        return " ".join(f"{self.status}{why}".split())


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


class _Told(Struct):
    spec: _Spec | None = None
    status: _Status | None = None
    involved_object: _About | None = None
    reason: str | None = None
    message: str | None = None
    count: int | None = None


_decode = msgspec.json.Decoder(_Told).decode


def tell(change: Change) -> str:
    """What a change came to; nothing if there is nothing worth telling."""
    if change.deleted:
        return ""
    after = _facts(change.entry)
    before = _facts(change.previous) if change.previous is not None else {}
    news = [f"{name} {after[name]}" for name in after if after[name] != before.get(name)]
    gone = [f"no {name}" for name in before if name not in after]
    return ", ".join(news + gone)


def _facts(entry: Entry) -> dict[str, str]:
    try:
        told = _decode(entry.data)
    except msgspec.DecodeError:
        return {}  # of a kind whose fields are of other types
    if told.involved_object is not None:
        return _event(told, told.involved_object)
    return _of_spec(told.spec or _Spec()) | _of_status(told.status or _Status())


def _event(told: _Told, about: _About) -> dict[str, str]:
    place = f"{about.namespace}/{about.name}".removeprefix("/")
    times = f" ({told.count} times)" if told.count and told.count > 1 else ""
    said = f"of {about.kind} {place}: {told.message}{times}"
    return {told.reason or "Event": " ".join(said.split())}


def _of_spec(spec: _Spec) -> dict[str, str]:
    taints = ", ".join(f"{one.key}:{one.effect}" for one in spec.taints or ())
    return _said(
        node=spec.node_name,
        replicas=spec.replicas,
        volume=spec.volume_name,
        unschedulable=spec.unschedulable or None,
        taints=f"[{taints}]" if taints else None,
        gates=len(spec.scheduling_gates or ()) or None,
    )


def _of_status(status: _Status) -> dict[str, str]:
    counts = _said(
        phase=status.phase,
        attached=status.attached,
        ready=status.ready_replicas,
        active=status.active,
        succeeded=status.succeeded,
        failed=status.failed,
    )
    return counts | {one.type: one.text() for one in status.conditions or ()}


def _said(**facts: object) -> dict[str, str]:
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
    """Listens to a store."""

    def __init__(self, now: Callable[[], float], out: TextIO | None = None) -> None:
        self._now = now
        self._out = out
        self._digest = hashlib.sha256()
        self.lines = 0
        self.counts: Counter[str] = Counter()

    def observe(self, change: Change) -> None:
        """Note a change."""
        key, now = change.entry.key, self._now()
        data = b"" if key.storage in _WITH_KEYS else change.entry.data
        content = hashlib.sha256(data).hexdigest()[:16]
        place = f"{key.namespace}/{key.name}" if key.namespace else key.name
        exact = f"{now:.3f} {change.revision} {change.type} {key.storage} {place} {content}\n"
        self._digest.update(exact.encode())
        self.lines += 1
        self.counts[f"{change.type} {key.storage}"] += 1
        if self._out is not None:
            told = tell(change)
            what = f"{_WORDS[change.type]} {key.storage} {place}{told and ': '}{told}"
            self._out.write(f"{_moment(now)} {what} [{change.revision} {content}]\n")

    @property
    def digest(self) -> str:
        """The digest of everything so far."""
        return self._digest.hexdigest()


def _moment(seconds: float) -> str:
    """Days, hours, minutes and seconds since the beginning."""
    minutes, left = divmod(round(seconds, 3), 60)
    hours, minutes = divmod(int(minutes), 60)
    days, hours = divmod(hours, 24)
    return f"{days}d {hours:02}:{minutes:02}:{left:06.3f}"
