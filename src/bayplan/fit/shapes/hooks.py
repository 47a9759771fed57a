"""Things that select pods, found by the labels of a pod.

Most selectors want one value of some label. Such a one is kept under that label and value, so that
a pod is held only against those that one of its labels calls for, and the few that have no such
wish.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from bayplan.kube.selectors import Selector

T = TypeVar("T", bound=Hashable)
Hook = tuple[str, str]


def hook_of(selectors: Iterable[Selector]) -> Hook | None:
    """A label and value without which pods are not selected by all of these; None if any may be."""
    for selector in selectors:
        for wanted in selector.requirements or ():
            if wanted.operator == "In" and len(wanted.values) == 1:
                return (wanted.key, wanted.values[0])
    return None


class Hooked(Generic[T]):
    """Things by the hook that they hang on."""

    def __init__(self) -> None:
        self._hanging: dict[Hook | None, dict[T, None]] = {}

    def add(self, hook: Hook | None, thing: T) -> None:
        """One thing more."""
        self._hanging.setdefault(hook, {})[thing] = None

    def discard(self, hook: Hook | None, thing: T) -> None:
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

    def on(self, hook: Hook | None) -> Iterable[T]:
        """What hangs on a hook."""
        return self._hanging.get(hook, ())

    def for_labels(self, labels: Mapping[str, str]) -> Iterator[T]:
        """What may select a pod of these labels."""
        yield from self._hanging.get(None, ())
        for hook in labels.items():
            yield from self._hanging.get(hook, ())
