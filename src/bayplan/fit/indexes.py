"""Indexes and logs that the model is built of: sets by name, selectors by label, logs of changes.

- `NameIndex` keeps sets of names by name, without a trace of those that are empty.
- `SelectorIndex` finds what may select a pod by the pod's labels: most selectors want one value of
  some label and are kept under that label and value, so that a pod is held only against those that
  one of its labels calls for, and the few that have no such requirement.
- `ChangeLog` is what changed, in order. Each reader keeps a cursor and reads what is new to it. The
  log drops its older half when it is trimmed; a reader whose cursor was dropped reads everything.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from bayplan.kube.selectors import Selector

T = TypeVar("T", bound=Hashable)
LabelPair = tuple[str, str]


def required_label(selectors: Iterable[Selector]) -> LabelPair | None:
    """A label and value without which pods are not selected by all of these; None if any may be."""
    for selector in selectors:
        for wanted in selector.requirements or ():
            if wanted.operator == "In" and len(wanted.values) == 1:
                return (wanted.key, wanted.values[0])
    return None


class SelectorIndex(Generic[T]):
    """Things by the hook that they hang on."""

    def __init__(self) -> None:
        self._hanging: dict[LabelPair | None, dict[T, None]] = {}

    def add(self, hook: LabelPair | None, thing: T) -> None:
        """One thing more."""
        self._hanging.setdefault(hook, {})[thing] = None

    def discard(self, hook: LabelPair | None, thing: T) -> None:
        """One thing less."""
        hanging = self._hanging.get(hook)
        if hanging is not None:
            hanging.pop(thing, None)
            if not hanging:
                del self._hanging[hook]

    def __bool__(self) -> bool:
        return bool(self._hanging)

    def clear(self) -> None:
        """None any more."""
        self._hanging.clear()

    def on(self, hook: LabelPair | None) -> Iterable[T]:
        """What hangs on a hook."""
        return self._hanging.get(hook, ())

    def for_labels(self, labels: Mapping[str, str]) -> Iterator[T]:
        """What may select a pod of these labels."""
        yield from self._hanging.get(None, ())
        for hook in labels.items():
            yield from self._hanging.get(hook, ())


class NameIndex:
    """Which names belong to a name."""

    def __init__(self) -> None:
        self._members: dict[str, set[str]] = {}

    def add(self, name: str, member: str) -> None:
        """One more belongs to a name."""
        self._members.setdefault(name, set()).add(member)

    def discard(self, name: str, member: str) -> None:
        """One no longer does, if it did."""
        members = self._members.get(name)
        if members is not None:
            members.discard(member)
            if not members:
                del self._members[name]

    def of(self, name: str) -> frozenset[str] | set[str]:
        """Those that belong to a name; to be read, not written."""
        return self._members.get(name, _NONE)


_NONE: frozenset[str] = frozenset()


LONGEST = 1 << 16


class ChangeLog(Generic[T]):
    """What changed, in order."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._entries: list[T] = []
        self._forgotten = 0
        self._longest = longest
        self.note = self._entries.append
        """Say that something changed (the list's own append: this is the hottest call of all)."""

    @property
    def end(self) -> int:
        """The cursor of a reader that has seen everything."""
        return self._forgotten + len(self._entries)

    def after(self, cursor: int) -> list[T] | None:
        """What changed since a cursor; None if that is forgotten in part."""
        start = cursor - self._forgotten
        return None if start < 0 else self._entries[start:]

    @property
    def is_long(self) -> bool:
        """Whether it is worth trimming."""
        return len(self._entries) > self._longest

    def trim(self) -> None:
        """Forget the older half, if the trail has grown long."""
        if self.is_long:
            half = len(self._entries) // 2
            del self._entries[:half]
            self._forgotten += half
