"""Suggestions for names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

SIMILAR = 0.6
MOST_LISTED = 20


def no_such(what: str, name: str, known: Iterable[str]) -> str:
    """Return a message that a name does not exist, with a suggestion and the known names."""
    return f"there is no {what} {name!r}{suggestion(name, known)}"


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the end of such a message: `; did you mean 'large'? there are: large, small`."""
    names = sorted(known)
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    listed = f"there are: {', '.join(names[:MOST_LISTED]) or 'none'}{more}"
    near = nearest(name, names)
    return f"; did you mean {near!r}? {listed}" if near else f"; {listed}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most similar; empty if none is."""
    by_case = {candidate.lower(): candidate for candidate in known}
    found = get_close_matches(name.lower(), by_case, n=1, cutoff=SIMILAR)
    return by_case[found[0]] if found else ""
