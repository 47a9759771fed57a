"""What somebody may have meant who wrote a name that does not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

SIMILAR = 0.6
MOST_LISTED = 20


def no_such(what: str, name: str, known: Iterable[str]) -> str:
    """There is no such thing; what was meant, perhaps; and what there is."""
    return f"there is no {what} {name!r}{suggestion(name, known)}"


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'large'? there are: large, small`."""
    names = sorted(known)
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    listed = f"there are: {', '.join(names[:MOST_LISTED]) or 'none'}{more}"
    near = nearest(name, names)
    return f"; did you mean {near!r}? {listed}" if near else f"; {listed}"


def nearest(name: str, known: Iterable[str]) -> str:
    """The name that is most like another; empty if none is."""
    by_case = {one.lower(): one for one in known}
    found = get_close_matches(name.lower(), by_case, n=1, cutoff=SIMILAR)
    return by_case[found[0]] if found else ""
