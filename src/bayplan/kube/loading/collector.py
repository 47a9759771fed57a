"""Where loaded objects gather: decoded, checked, counted or reported, and kept in less memory.

The decoder makes a new string for every value it reads. In a dump of a large cluster a third of the
memory is copies of the same few hundred texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from bayplan.kube.codec import (
    EVENTS,
    KINDS,
    Kind,
    ObjectError,
    Wire,
    decode_as,
    decode_event,
    find_kind,
    read_head,
)
from bayplan.kube.events import Event
from bayplan.kube.meta import Condition, KubeObject, ObjectMeta
from bayplan.kube.pods import Container, Pod, PodSpec, PodStatus
from bayplan.kube.times import read_time
from bayplan.kube.validation import check

_COPY_OF_ITSELF = "kubectl.kubernetes.io/last-applied-configuration"


def slim(obj: KubeObject) -> None:
    """Share the texts of an object that are likely to be repeated in others."""
    slim_around(obj)
    if isinstance(obj, Pod):
        _slim_spec(obj.spec)


def slim_around(obj: KubeObject) -> None:
    """The same for an object whose spec needs no more of it."""
    _slim_meta(obj.metadata)
    if isinstance(obj, Pod):
        _slim_status(obj.status)


def keep_spec(pod: Pod, before: Pod) -> bool:
    """Let a pod keep the spec that it had before, if it says the same but for the node."""
    known, node = before.spec, pod.spec.node_name
    pod.spec.node_name = known.node_name
    same = pod.spec == known
    pod.spec.node_name = node
    if same:
        pod.spec = known if node == known.node_name else replace(known, node_name=intern(node))
    return same


def _slim_meta(meta: ObjectMeta) -> None:
    meta.annotations.pop(_COPY_OF_ITSELF, None)
    meta.namespace = intern(meta.namespace)
    meta.labels = {key: intern(value) for key, value in meta.labels.items()}
    if meta.creation_timestamp is not None:
        meta.creation_timestamp = intern(meta.creation_timestamp)
    for owner in meta.owner_references:
        owner.api_version, owner.kind = intern(owner.api_version), intern(owner.kind)
        owner.name, owner.uid = intern(owner.name), intern(owner.uid)


def _slim_spec(spec: PodSpec) -> None:
    spec.node_name = intern(spec.node_name)
    for container in spec.containers:
        _slim_container(container)
    for toleration in spec.tolerations:
        toleration.key = intern(toleration.key)


def _slim_status(status: PodStatus) -> None:
    for condition in status.conditions:
        _slim_condition(condition)
    status.phase = intern(status.phase)
    # All that is read of a container's status is a resize; without one nothing is left to read.
    if not any(s.allocated_resources or s.resources for s in status.container_statuses):
        status.container_statuses = []


def _slim_container(container: Container) -> None:
    container.name, container.image = intern(container.name), intern(container.image)
    resources = container.resources
    for amounts in (resources.requests, resources.limits):
        for name, written in amounts.items():
            if isinstance(written, str):
                amounts[name] = intern(written)


def _slim_condition(condition: Condition) -> None:
    condition.type, condition.status = intern(condition.type), intern(condition.status)
    condition.reason = intern(condition.reason)
    if condition.last_transition_time is not None:
        condition.last_transition_time = intern(condition.last_transition_time)


Progress = Callable[[str, int, float], None]
"""Told now and then the source being read, how many objects have been seen in all, and which part
of the source (0 to 1) that is, as far as it is known.
"""

T = TypeVar("T", bound=Wire)


class Unseen(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A kind that could not be read, wholly or but for one namespace, and why."""

    kind: str
    why: str = ""
    but_in: str = ""
    """The namespace of which it could be read all the same."""


_TELL_EVERY = 2048
_MAX_PROBLEMS = 10_000
_LONGEST_VERSION = 80


class LeftOut(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object that was left out of a dump since it cannot be used."""

    identity: str
    path: str = ""
    problem: str = ""


class DumpNotes(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a dump of Bayplan's says of itself, in its list beside the items."""

    unseen: tuple[Unseen, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    kinds: tuple[str, ...] = ()
    """All that were asked for, whether or not there are any."""
    server_version: str = ""
    taken_at: str | None = None


@dataclass(slots=True)
class Loaded:
    """What came of a load."""

    objects: list[KubeObject] = field(default_factory=list)
    problems: list[ObjectError] = field(default_factory=list)
    """What was wrong, in order; after ten thousand only the last entry says that there is more."""
    events: list[Event] = field(default_factory=list)
    """Reports about objects, which decide nothing; only where they are asked for."""
    unreadable: list[ObjectError] = field(default_factory=list)
    """Those of them that are about text and not about an object: it may have been cut, and nobody
    knows what else it held.
    """
    skipped: Counter[str] = field(default_factory=Counter)
    """How many objects of each kind that is not read."""
    unseen: list[Unseen] = field(default_factory=list)
    """What of the cluster could not be read when this was made."""
    read: frozenset[str] | None = None
    """The kinds that were asked for, whether or not there are any; None if nobody knows."""
    server_version: str = ""
    """What the API server said of itself, if it was asked."""
    taken_at: str | None = None
    """When the cluster was read, if it is known."""

    def join(self, other: Loaded) -> None:
        """Take in what came of another load."""
        self.objects += other.objects
        self.events += other.events
        self.problems += other.problems
        self.unreadable += other.unreadable
        self.skipped += other.skipped
        self.unseen += (one for one in other.unseen if one not in self.unseen)
        if other.read is not None:
            self.read = (self.read or frozenset()) | other.read
        self.server_version = other.server_version or self.server_version
        self.taken_at = other.taken_at or self.taken_at

    def drop_repeated(self) -> Counter[str]:
        """Keep the last of objects of one kind and name; says how often each was there that was
        there more than once.
        """
        last = {(type(obj), obj.key): obj for obj in self.objects}
        if len(last) == len(self.objects):
            return Counter()
        counts = Counter((type(obj), obj.key) for obj in self.objects)
        self.objects = list(last.values())
        named = {f"{kind.__name__} {key}": n for (kind, key), n in counts.items() if n > 1}
        return Counter(named)


class Collector:
    """Takes objects in their wire form, one by one or in lists."""

    def __init__(self, progress: Progress | None = None, *, events: bool = False) -> None:
        self.loaded = Loaded()
        self._events = events
        self.source = ""
        self.share = 0.0
        """How much of the source has been read."""
        self._progress = progress
        self._seen = 0

    def take(self, data: Wire, like: Kind | None = None) -> None:
        """Decode and check one object; `like` is what it is if it does not say."""
        try:
            kind = self._kind(data, like)
        except ObjectError as error:  # who knows what it was: the beginning of a list, perhaps
            self.report_unreadable(error)
        else:
            if kind is not None:
                self._decode(data, kind)
        self._tell()

    def _decode(self, data: Wire, kind: Kind) -> None:
        try:
            if kind is EVENTS:
                self.loaded.events.append(decode_event(data))
                return
            obj = decode_as(kind, data)
            check(obj)
        except ObjectError as error:
            self.report(error)
        else:
            slim(obj)
            self.loaded.objects.append(obj)

    def take_all(self, items: Sequence[Wire], like: Kind | None = None) -> None:
        """Take objects that are, if they do not say, all of one kind."""
        for number, item in enumerate(items):
            self.share = number / len(items)
            self.take(item, like)

    def take_list(self, kind: str, api_version: str, items: list[T]) -> None:
        """Take the items of a `List`, or of a typed list, whose items need not say their kind."""
        like = self._find(kind.removesuffix("List"), api_version)
        if like is not None or kind == "List":
            self.take_all(items, like)
        else:
            self.skip(kind, api_version, len(items))

    def take_notes(self, notes: DumpNotes | None) -> None:
        """Take what a dump says that it lacks."""
        if notes is None:
            return
        self.loaded.unseen += (one for one in notes.unseen if one.kind in KINDS)
        self.loaded.read = frozenset(notes.kinds).intersection(KINDS) or None
        self.loaded.server_version = notes.server_version[:_LONGEST_VERSION]
        self.loaded.taken_at = notes.taken_at if read_time(notes.taken_at) else None
        for one in notes.left_out:
            self.report(ObjectError(one.identity, one.path, None, one.problem))

    def skip(self, kind: str, api_version: str, count: int = 1) -> None:
        """Count what is not read."""
        name = f"{kind[:80]} ({api_version[:80]})" if api_version else kind[:80]
        self.loaded.skipped[name] += count

    def report(self, error: ObjectError) -> None:
        """Keep a problem, with the source it came from."""
        problems = self.loaded.problems
        if len(problems) < _MAX_PROBLEMS:
            problems.append(error.at(self.source))
        elif len(problems) == _MAX_PROBLEMS:
            problems.append(ObjectError("load", "", None, "more problems than are listed here"))

    def report_text(self, place: str, problem: str) -> None:
        """Keep a problem of something that is not even an object."""
        self.report_unreadable(ObjectError(place, "", None, problem))

    def report_unreadable(self, error: ObjectError) -> None:
        """Keep a problem that leaves open what else there was."""
        if len(self.loaded.unreadable) < _MAX_PROBLEMS:
            self.loaded.unreadable.append(error)
        self.report(error)

    def _kind(self, data: Wire, like: Kind | None) -> Kind | None:
        head = read_head(data)
        if not head.kind and like is not None:
            return like
        if not head.kind:
            raise ObjectError(head.identity, "kind", None, "is missing")
        kind = self._find(head.kind, head.api_version)
        if kind is None:
            self.skip(head.kind, head.api_version)
        return kind

    def _find(self, name: str, api_version: str) -> Kind | None:
        if self._events and name == EVENTS.name:
            return EVENTS if api_version in {"v1", EVENTS.api_version} else None
        return find_kind(name, api_version)

    def _tell(self) -> None:
        self._seen += 1
        if self._progress is not None and self._seen % _TELL_EVERY == 0:
            self._progress(self.source, self._seen, self.share)
