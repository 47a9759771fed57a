"""Host ports in use, by port, so that asking about a port looks only at nodes that use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from bayplan.fit.shapes.shape import HostPort

ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - the wildcard of the Kubernetes API, not a listening socket

Use = Counter[tuple[int, str]]


class HostPorts:
    """Which nodes use which ports of theirs, on which addresses."""

    def __init__(self) -> None:
        self._users: dict[tuple[str, int], Use] = {}

    def take(self, slot: int, ports: Iterable[HostPort], sign: int) -> None:
        """A pod with these ports comes (+1) or leaves (-1)."""
        for port in ports:
            users = self._users.setdefault((port.protocol, port.port), Counter())
            users[slot, port.ip] += sign
            if not users[slot, port.ip]:
                del users[slot, port.ip]

    def conflicting(self, ports: Iterable[HostPort]) -> set[int]:
        """The slots where at least one of these ports is taken."""
        return {
            slot
            for port in ports
            for slot, address in self._users.get((port.protocol, port.port), ())
            if _meet(address, port.ip)
        }


def clash(one: HostPort, other: HostPort) -> bool:
    """Whether two pods on one node cannot both have these ports."""
    same = one.protocol == other.protocol and one.port == other.port
    return same and _meet(one.ip, other.ip)


def _meet(address: str, other: str) -> bool:
    return ANY_ADDRESS in (address, other) or address == other
