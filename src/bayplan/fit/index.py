"""Sets of names by name, without a trace of those that are empty: names come and go for ever."""

from __future__ import annotations


class Index:
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
