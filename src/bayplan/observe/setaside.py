"""Objects that cannot be used: what is wrong with each, told once.

An object that is wrong in the same way stays silent through any number of versions; heartbeats must
not repeat the same complaint every few seconds. It is told again when something else is wrong with
it, or when it was sound, or gone, in between.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bayplan.kube.codec import ObjectError, identify
from bayplan.kube.meta import KubeObject

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Problem:
    """An object that is set aside, and why."""

    kind: type[KubeObject]
    key: str
    text: str
    """What is wrong, with the object, the field and the value."""
    object: KubeObject | None = None
    """The object as far as it could be read; None if it does not even fit its type."""
    uid: str = ""
    """Its uid, where that could be read."""

    @property
    def identity(self) -> str:
        """`Kind namespace/name`."""
        namespace, _, name = self.key.rpartition("/")
        return identify(self.kind.__name__, namespace, name)


ProblemListener = Callable[[Problem], None]


@dataclass(frozen=True, slots=True)
class _Entry:
    problem: Problem
    kept: KubeObject | None
    """The last sound version, which the snapshot still has."""


class SetAside:
    """The objects set aside at this moment."""

    def __init__(self) -> None:
        self._entries: dict[tuple[type[KubeObject], str], _Entry] = {}
        self._listeners: list[ProblemListener] = []

    def listen(self, listener: ProblemListener) -> None:
        """Call that for every new problem."""
        self._listeners.append(listener)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Problem]:
        return (entry.problem for entry in self._entries.values())

    def __contains__(self, which: tuple[type[KubeObject], str]) -> bool:
        return which in self._entries

    def put(self, problem: Problem, kept: KubeObject | None) -> None:
        """Set an object aside; `kept` is its last sound version, if there was one."""
        known = self._entries.get((problem.kind, problem.key))
        if known is not None:
            kept = known.kept
        self._entries[problem.kind, problem.key] = _Entry(problem, kept)
        if known is None or known.problem.text != problem.text:
            log.warning("set aside: %s", problem.text)
            for listener in tuple(self._listeners):
                listener(problem)

    def take_back(
        self, kind: type[KubeObject], key: str, known: KubeObject | None
    ) -> KubeObject | None:
        """An object is sound, or gone: what the snapshot had of it until now.

        `known` is what the informer had; it counts unless the object was set aside.
        """
        entry = self._entries.pop((kind, key), None)
        return known if entry is None else entry.kept

    def drop(self, kind: type[KubeObject], key: str) -> None:
        """An object that could never be read is not there any more."""
        self._entries.pop((kind, key), None)


def unsound(obj: KubeObject, error: ObjectError) -> Problem:
    """The problem of an object that a check refused."""
    return Problem(type(obj), obj.key, str(error), obj, obj.metadata.uid)
