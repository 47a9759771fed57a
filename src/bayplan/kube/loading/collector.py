"""Where loaded objects gather: decoded, checked, counted or reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from bayplan.kube.codec import Kind, ObjectError, Wire, decode_as, find_kind, read_head
from bayplan.kube.loading.slimming import slim
from bayplan.kube.meta import KubeObject
from bayplan.kube.validation import check

Progress = Callable[[str, int], None]
"""Told now and then the source being read and how many objects have been seen in all."""

T = TypeVar("T", bound=Wire)

_TELL_EVERY = 2048
_MAX_PROBLEMS = 10_000


@dataclass(slots=True)
class Loaded:
    """What came of a load."""

    objects: list[KubeObject] = field(default_factory=list)
    problems: list[ObjectError] = field(default_factory=list)
    """What was wrong, in order; after ten thousand only the last entry says that there is more."""
    skipped: Counter[str] = field(default_factory=Counter)
    """How many objects of each kind that is not read."""


class Collector:
    """Takes objects in their wire form, one by one or in lists."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.loaded = Loaded()
        self.source = ""
        self._progress = progress
        self._seen = 0

    def take(self, data: Wire, like: Kind | None = None) -> None:
        """Decode and check one object; `like` is what it is if it does not say."""
        try:
            kind = self._kind(data, like)
            if kind is not None:
                obj = decode_as(kind, data)
                check(obj)
                slim(obj)
                self.loaded.objects.append(obj)
        except ObjectError as error:
            self.report(error)
        self._tell()

    def take_all(self, items: Iterable[Wire], like: Kind | None = None) -> None:
        """Take objects that are, if they do not say, all of one kind."""
        for item in items:
            self.take(item, like)

    def take_list(self, kind: str, api_version: str, items: list[T]) -> None:
        """Take the items of a `List`, or of a typed list, whose items need not say their kind."""
        like = find_kind(kind.removesuffix("List"), api_version)
        if like is not None or kind == "List":
            self.take_all(items, like)
        else:
            self.skip(kind, api_version, len(items))

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
        self.report(ObjectError(place, "", None, problem))

    def _kind(self, data: Wire, like: Kind | None) -> Kind | None:
        head = read_head(data)
        if not head.kind and like is not None:
            return like
        if not head.kind:
            raise ObjectError(head.identity, "kind", None, "is missing")
        kind = find_kind(head.kind, head.api_version)
        if kind is None:
            self.skip(head.kind, head.api_version)
        return kind

    def _tell(self) -> None:
        self._seen += 1
        if self._progress is not None and self._seen % _TELL_EVERY == 0:
            self._progress(self.source, self._seen)
