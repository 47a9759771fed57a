"""A finding: what is wrong with which objects, why it matters, and what to do next.

The same problem of many objects is one finding, with their number and some of them as examples.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from heapq import nsmallest

from bayplan.kube.meta import KubeObject

MOST_EXAMPLES = 50
MOST_TEXT = 500
"""The length to which messages of other programs are shortened."""


class Severity(Enum):
    """How serious a finding is."""

    ERROR = "error"
    """Something does not work now, or can never work as configured."""
    WARNING = "warning"
    """Something is pending, or will not work when it is needed."""
    INFO = "info"
    """Worth knowing; it may be intended."""

    @property
    def rank(self) -> int:
        """The sort key: the most serious first."""
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
    """What follows from it."""
    advice: str
    """What to do next."""
    needs: tuple[type[KubeObject], ...] = ()
    """The kinds of objects that must have been read for this check."""


@dataclass(frozen=True, slots=True, order=True)
class Example:
    """An object that has the problem, with details."""

    name: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of one or many objects."""

    kind: CheckKind
    about: str
    """What the objects have in common, such as a driver or a queue; may be empty."""
    text: str
    """What is wrong, in one line."""
    count: int
    objects: str
    """The kind of the counted objects, such as `Node`."""
    examples: tuple[Example, ...]
    """The first objects by name."""
    advice: str
    """What to do next about these objects."""
    severity: Severity
    """The severity of its kind, unless these objects are less serious."""

    @property
    def order(self) -> tuple[int, str, int, str]:
        """The sort key: by severity, then by code, then the most objects first."""
        return (self.severity.rank, self.kind.code, -self.count, self.about)


def make_finding(  # noqa: PLR0913 - one for each field of a finding
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
    """Return a finding about these objects, which may be in any order."""
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
    """Return a message of another program in one line of bounded length."""
    line = " ".join(text[: 4 * MOST_TEXT].split())
    return line if len(line) <= MOST_TEXT else f"{line[: MOST_TEXT - 1]}…"


def clause(count: int, noun: str, verb: str, of: str = "") -> str:
    """`1 node publishes`, `2 nodes publish`, `2 claims of class fast wait`."""
    subject = f"{plural(count, noun)}{f' {of}' if of else ''}"
    ending = "" if count != 1 else "es" if verb.endswith("sh") else "s"
    return f"{subject} {verb}{ending}"


def plural(count: int, thing: str) -> str:
    """`1 node`, `2 nodes`, `3 classes`."""
    if count == 1:
        return f"{count:,} {thing}"
    return f"{count:,} {thing}es" if thing.endswith("s") else f"{count:,} {thing}s"
