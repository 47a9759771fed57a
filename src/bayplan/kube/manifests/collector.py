"""Collects loaded objects: decodes, checks, counts or reports them, and interns their texts.

The decoder creates a new string for every value. In a dump of a large cluster a third of the memory
would be copies of the same few hundred texts.
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

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def intern_texts(obj: KubeObject) -> None:
    """Intern the texts of an object that are likely to be repeated in others."""
    intern_metadata_and_status(obj)
    if isinstance(obj, Pod):
        _intern_spec(obj.spec)


def intern_metadata_and_status(obj: KubeObject) -> None:
    """Intern the texts of an object whose spec is shared already."""
    _intern_meta(obj.metadata)
    if isinstance(obj, Pod):
        _intern_status(obj.status)


def reuse_spec(pod: Pod, before: Pod) -> bool:
    """Share the spec of the previous version of a pod if it differs only in the node."""
    known, node = before.spec, pod.spec.node_name
    pod.spec.node_name = known.node_name
    same = pod.spec == known
    pod.spec.node_name = node
    if same:
        pod.spec = known if node == known.node_name else replace(known, node_name=intern(node))
    return same


def _intern_meta(meta: ObjectMeta) -> None:
    meta.annotations.pop(_LAST_APPLIED, None)
    meta.namespace = intern(meta.namespace)
    meta.labels = {key: intern(value) for key, value in meta.labels.items()}
    if meta.creation_timestamp is not None:
        meta.creation_timestamp = intern(meta.creation_timestamp)
    for owner in meta.owner_references:
        owner.api_version, owner.kind = intern(owner.api_version), intern(owner.kind)
        owner.name, owner.uid = intern(owner.name), intern(owner.uid)


def _intern_spec(spec: PodSpec) -> None:
    spec.node_name = intern(spec.node_name)
    for container in spec.containers:
        _intern_container(container)
    for toleration in spec.tolerations:
        toleration.key = intern(toleration.key)


def _intern_status(status: PodStatus) -> None:
    for condition in status.conditions:
        _intern_condition(condition)
    status.phase = intern(status.phase)
    # Only a resize is read from a container's status; without one the status is not needed.
    if not any(s.allocated_resources or s.resources for s in status.container_statuses):
        status.container_statuses = []


def _intern_container(container: Container) -> None:
    container.name, container.image = intern(container.name), intern(container.image)
    resources = container.resources
    for amounts in (resources.requests, resources.limits):
        for name, written in amounts.items():
            if isinstance(written, str):
                amounts[name] = intern(written)


def _intern_condition(condition: Condition) -> None:
    condition.type, condition.status = intern(condition.type), intern(condition.status)
    condition.reason = intern(condition.reason)
    if condition.last_transition_time is not None:
        condition.last_transition_time = intern(condition.last_transition_time)


Progress = Callable[[str, int, float], None]
"""Called regularly with the source being read, the number of objects seen so far, and the part of
the source (0 to 1) that is read, as far as it is known.
"""

T = TypeVar("T", bound=Wire)


class UnseenKind(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A kind that could not be read, or in one namespace only, and the reason."""

    kind: str
    reason: str = msgspec.field(default="", name="why")
    readable_namespace: str = msgspec.field(default="", name="butIn")
    """The only namespace in which it could be read."""


_PROGRESS_INTERVAL = 2048
_MAX_PROBLEMS = 10_000
_LONGEST_VERSION = 80


class OmittedObject(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object that was omitted from a dump because it is not valid."""

    identity: str
    path: str = ""
    problem: str = ""


class DumpMetadata(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Metadata of a dump by Bayplan, in its list beside the items."""

    unseen: tuple[UnseenKind, ...] = ()
    left_out: tuple[OmittedObject, ...] = ()
    kinds: tuple[str, ...] = ()
    """All kinds that were requested, whether or not there are objects of them."""
    server_version: str = ""
    taken_at: str | None = None


@dataclass(slots=True)
class LoadResult:
    """The result of a load."""

    objects: list[KubeObject] = field(default_factory=list)
    problems: list[ObjectError] = field(default_factory=list)
    """All problems in order; after ten thousand, one last entry reports that there are more."""
    events: list[Event] = field(default_factory=list)
    """Events, which affect no decision; only where they are requested."""
    unreadable: list[ObjectError] = field(default_factory=list)
    """The problems that are about text and not about an object: it may have been truncated, and
    it is unknown which objects it had.
    """
    skipped: Counter[str] = field(default_factory=Counter)
    """The number of objects of each kind that is not read."""
    unseen: list[UnseenKind] = field(default_factory=list)
    """Kinds that could not be read when the dump was taken."""
    read: frozenset[str] | None = None
    """The kinds that were requested, whether or not there are objects of them; None if unknown."""
    server_version: str = ""
    """The version of the API server, if it is known."""
    taken_at: str | None = None
    """When the cluster was read, if it is known."""

    def join(self, other: LoadResult) -> None:
        """Add the result of another load."""
        self.objects += other.objects
        self.events += other.events
        self.problems += other.problems
        self.unreadable += other.unreadable
        self.skipped += other.skipped
        self.unseen += (kind for kind in other.unseen if kind not in self.unseen)
        if other.read is not None:
            self.read = (self.read or frozenset()) | other.read
        self.server_version = other.server_version or self.server_version
        self.taken_at = other.taken_at or self.taken_at

    def drop_repeated(self) -> Counter[str]:
        """Keep the last of several objects of one kind and name.

        Return how often each of these objects was present.
        """
        last = {(type(obj), obj.key): obj for obj in self.objects}
        if len(last) == len(self.objects):
            return Counter()
        counts = Counter((type(obj), obj.key) for obj in self.objects)
        self.objects = list(last.values())
        named = {f"{kind.__name__} {key}": n for (kind, key), n in counts.items() if n > 1}
        return Counter(named)


class Collector:
    """Decodes and collects objects, one by one or in lists."""

    def __init__(self, progress: Progress | None = None, *, events: bool = False) -> None:
        self.loaded = LoadResult()
        self._events = events
        self.source = ""
        self.share = 0.0
        """The part of the source that has been read, from 0 to 1."""
        self._progress = progress
        self._seen = 0

    def take(self, data: Wire, default: Kind | None = None) -> None:
        """Decode and check one object; `default` is its kind if it has none."""
        try:
            kind = self._kind(data, default)
        except ObjectError as error:  # it may have been the beginning of a list
            self.report_unreadable(error)
        else:
            if kind is not None:
                self._decode(data, kind)
        self._report_progress()

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
            intern_texts(obj)
            self.loaded.objects.append(obj)

    def take_all(self, items: Sequence[Wire], default: Kind | None = None) -> None:
        """Take objects; `default` is the kind of those that have none."""
        for number, item in enumerate(items):
            self.share = number / len(items)
            self.take(item, default)

    def take_list(self, kind: str, api_version: str, items: list[T]) -> None:
        """Take the items of a `List`, or of a typed list, whose items need no kind."""
        default = self._find(kind.removesuffix("List"), api_version)
        if default is not None or kind == "List":
            self.take_all(items, default)
        else:
            self.skip(kind, api_version, len(items))

    def take_metadata(self, metadata: DumpMetadata | None) -> None:
        """Take the metadata of a dump."""
        if metadata is None:
            return
        self.loaded.unseen += (unseen for unseen in metadata.unseen if unseen.kind in KINDS)
        self.loaded.read = frozenset(metadata.kinds).intersection(KINDS) or None
        self.loaded.server_version = metadata.server_version[:_LONGEST_VERSION]
        self.loaded.taken_at = metadata.taken_at if read_time(metadata.taken_at) else None
        for omitted in metadata.left_out:
            self.report(ObjectError(omitted.identity, omitted.path, None, omitted.problem))

    def skip(self, kind: str, api_version: str, count: int = 1) -> None:
        """Count objects that are not read."""
        name = f"{kind[:80]} ({api_version[:80]})" if api_version else kind[:80]
        self.loaded.skipped[name] += count

    def report(self, error: ObjectError) -> None:
        """Record a problem with its source."""
        problems = self.loaded.problems
        if len(problems) < _MAX_PROBLEMS:
            problems.append(error.at(self.source))
        elif len(problems) == _MAX_PROBLEMS:
            problems.append(ObjectError("load", "", None, "more problems than are listed here"))

    def report_text(self, place: str, problem: str) -> None:
        """Record a problem of text that is not an object."""
        self.report_unreadable(ObjectError(place, "", None, problem))

    def report_unreadable(self, error: ObjectError) -> None:
        """Record a problem after which it is unknown which objects there were."""
        if len(self.loaded.unreadable) < _MAX_PROBLEMS:
            self.loaded.unreadable.append(error)
        self.report(error)

    def _kind(self, data: Wire, default: Kind | None) -> Kind | None:
        head = read_head(data)
        if not head.kind and default is not None:
            return default
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

    def _report_progress(self) -> None:
        self._seen += 1
        if self._progress is not None and self._seen % _PROGRESS_INTERVAL == 0:
            self._progress(self.source, self._seen, self.share)
