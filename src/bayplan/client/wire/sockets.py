"""Sockets that notice when the other side is gone.

A watch can be silent for minutes, so a peer that vanished without a goodbye (a pulled plug, a
firewall that forgot us) would not be missed. Keep-alive probes find out within a minute.
"""

from __future__ import annotations

import socket

from aiohttp import AddrInfoType

IDLE, INTERVAL, PROBES = 30, 10, 3
_OPTIONS = {"TCP_KEEPIDLE": IDLE, "TCP_KEEPINTVL": INTERVAL, "TCP_KEEPCNT": PROBES}


def lively_socket(address: AddrInfoType) -> socket.socket:
    """A TCP socket that probes a silent peer, where the platform can."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS.items():
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made
