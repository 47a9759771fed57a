"""A finding is a value: what is wrong with which objects, why it matters, and what to do next.

The same trouble of many objects is one finding with their number and some of them as examples, so
that five thousand nodes are a line and not a book.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from heapq import nsmallest

from bayplan.kube.meta import KubeObject

MOST_EXAMPLES = 50
MOST_TEXT = 500
"""Characters of a message of others that are kept."""


class Severity(Enum):
    """How bad it is."""

    ERROR = "error"
    """Something does not work now, or never will as it is."""
    WARNING = "warning"
    """Something waits, or will not work when it is needed."""
    INFO = "info"
    """Worth knowing; it may be as it is meant."""

    @property
    def rank(self) -> int:
        """The most serious first."""
        return _RANKS[self]


_RANKS = {one: rank for rank, one in enumerate(Severity)}


@dataclass(frozen=True, slots=True)
class CheckKind:
    """A kind of finding, by its code."""

    code: str
    severity: Severity
    what: str
    """What is wrong, in a line."""
    why: str
    """What comes of it."""
    advice: str
    """What to do next."""
    needs: tuple[type[KubeObject], ...] = ()
    """What must have been read, since nothing can be said of what nobody looked at."""


@dataclass(frozen=True, slots=True, order=True)
class Example:
    """An object that has the trouble, and what is to be said of it in particular."""

    name: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One trouble, of one or of many objects."""

    kind: CheckKind
    about: str
    """What they have in common, such as a driver or a queue; empty if nothing."""
    text: str
    """What is wrong, in one line."""
    count: int
    objects: str
    """Of which kind the objects are that are counted, such as `Node`."""
    examples: tuple[Example, ...]
    """The first of them by name."""
    advice: str
    """What to do next, about these."""
    severity: Severity
    """That of its kind, unless these are less serious."""

    @property
    def order(self) -> tuple[int, str, int, str]:
        """The most serious first, then by code, then the most."""
        return (self.severity.rank, self.kind.code, -self.count, self.about)


def found(  # noqa: PLR0913 - a finding has so many parts
    kind: CheckKind,
    objects: str,
    examples: Iterable[Example],
    text: str,
    *,
    about: str = "",
    advice: str = "",
    count: int | None = None,
    severity: Severity | None = None,
) -> Finding:
    """A finding about these objects, which need not come in any order."""
    every = list(examples)
    return Finding(
        kind,
        about,
        text,
        len(every) if count is None else count,
        objects,
        tuple(nsmallest(MOST_EXAMPLES, every)),
        advice or kind.advice,
        severity or kind.severity,
    )


def shortened(text: str) -> str:
    """A message of others, in one line of bounded length."""
    line = " ".join(text[: 4 * MOST_TEXT].split())
    return line if len(line) <= MOST_TEXT else f"{line[: MOST_TEXT - 1]}…"


def who(count: int, thing: str, does: str, of: str = "") -> str:
    """`1 node says`, `2 nodes say`, `2 claims of class fast wait`."""
    said = f"{plural(count, thing)}{f' {of}' if of else ''}"
    ending = "" if count != 1 else "es" if does.endswith("sh") else "s"
    return f"{said} {does}{ending}"


def plural(count: int, thing: str) -> str:
    """`1 node`, `2 nodes`, `3 classes`."""
    if count == 1:
        return f"{count:,} {thing}"
    return f"{count:,} {thing}es" if thing.endswith("s") else f"{count:,} {thing}s"
