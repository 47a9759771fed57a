"""Invalid objects, which are left out of the snapshot: each problem is reported once.

The same problem of an object is not reported again for its later versions; heartbeats must not
repeat it every few seconds. It is reported again when the problem changes, or when the object was
valid, or deleted, in between.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bayplan.kube.codec import ObjectError, identify
from bayplan.kube.meta import KubeObject

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ObjectProblem:
    """An invalid object, and what is wrong with it."""

    kind: type[KubeObject]
    key: str
    text: str
    """What is wrong, with the object, the field and the value."""
    object: KubeObject | None = None
    """The object as far as it could be decoded; None if it does not match its type."""
    uid: str = ""
    """Its uid, where it could be decoded."""

    @property
    def identity(self) -> str:
        """`Kind namespace/name`."""
        namespace, _, name = self.key.rpartition("/")
        return identify(self.kind.__name__, namespace, name)


ProblemListener = Callable[[ObjectProblem], None]


@dataclass(frozen=True, slots=True)
class _Entry:
    problem: ObjectProblem
    kept: KubeObject | None
    """The last valid version, which the snapshot still has."""


class InvalidObjects:
    """The objects that are invalid now."""

    def __init__(self) -> None:
        self._entries: dict[tuple[type[KubeObject], str], _Entry] = {}
        self._listeners: list[ProblemListener] = []

    def listen(self, listener: ProblemListener) -> None:
        """Call the listener for every new problem."""
        self._listeners.append(listener)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ObjectProblem]:
        return (entry.problem for entry in self._entries.values())

    def __contains__(self, which: tuple[type[KubeObject], str]) -> bool:
        return which in self._entries

    def put(self, problem: ObjectProblem, kept: KubeObject | None) -> None:
        """Add an invalid object; `kept` is its last valid version, if there was one."""
        known = self._entries.get((problem.kind, problem.key))
        if known is not None:
            kept = known.kept
        self._entries[problem.kind, problem.key] = _Entry(problem, kept)
        if known is None or known.problem.text != problem.text:
            log.warning("ignoring invalid object: %s", problem.text)
            for listener in tuple(self._listeners):
                listener(problem)

    def resolve(
        self, kind: type[KubeObject], key: str, known: KubeObject | None
    ) -> KubeObject | None:
        """Remove an object that is valid again, or deleted; return the snapshot's version of it.

        `known` is the informer's version, which the snapshot has unless the object was invalid.
        """
        entry = self._entries.pop((kind, key), None)
        return known if entry is None else entry.kept

    def drop(self, kind: type[KubeObject], key: str) -> None:
        """Remove an object that was never valid and is deleted."""
        self._entries.pop((kind, key), None)


def invalid_object(obj: KubeObject, error: ObjectError) -> ObjectProblem:
    """Return the problem of an object that validation refused."""
    return ObjectProblem(type(obj), obj.key, str(error), obj, obj.metadata.uid)
