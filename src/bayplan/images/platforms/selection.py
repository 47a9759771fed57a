"""Choosing a manifest from an image index.

Filter by match, sort stably by rank, take the first. Entries that say no platform come last: only
their image config can tell, and reading that is the puller's work. Attestations describe other
entries and never run anywhere.
"""

from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from bayplan.images.platforms.matcher import Matcher, Rank
from bayplan.images.platforms.platform import Platform

_DESCRIBED = 20
_DESCRIBED_LETTERS = 60
ATTESTATION_ANNOTATION = "vnd.docker.reference.type"


class Offered(Protocol):
    """An index's entry, as far as choosing looks at it."""

    @property
    def platform(self) -> Platform | None:
        """What the entry says it was built for."""

    @property
    def annotations(self) -> dict[str, str]:
        """Remarks; attestations are marked here."""


_Entry = TypeVar("_Entry", bound=Offered)


class Choice(NamedTuple, Generic[_Entry]):
    """What an index has for a matcher."""

    matching: list[_Entry]  # best first
    undeclared: list[_Entry]  # in the index's order, to be judged by their config
    offered: list[Platform]  # everything on offer, for the error message


def is_attestation(entry: Offered) -> bool:
    """Say whether an entry describes another one instead of being an image."""
    if entry.annotations.get(ATTESTATION_ANNOTATION) == "attestation-manifest":
        return True
    platform = entry.platform
    return platform is not None and (platform.os, platform.architecture) == ("unknown", "unknown")


def choose(entries: Iterable[_Entry], matcher: Matcher) -> Choice[_Entry]:
    """Sort an index's entries by how well they suit."""
    images = [entry for entry in entries if not is_attestation(entry)]
    ranked: list[tuple[Rank, int]] = []
    for position, entry in enumerate(images):
        rank = None if entry.platform is None else matcher.rank(entry.platform)
        if rank is not None:
            ranked.append((rank, position))
    return Choice(
        [images[position] for _, position in sorted(ranked)],
        [entry for entry in images if entry.platform is None],
        [entry.platform for entry in images if entry.platform is not None],
    )


def describe(offered: Sequence[Platform]) -> str:
    """List platforms for an error message, each once, and only so many."""
    names = list(dict.fromkeys(str(platform)[:_DESCRIBED_LETTERS] for platform in offered))
    more = len(names) - _DESCRIBED
    rest = [f"and {more} more"] if more > 0 else []
    return ", ".join(names[:_DESCRIBED] + rest) or "none"
