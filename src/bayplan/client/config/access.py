"""Everything needed to talk to one API server, in one value."""

from __future__ import annotations

from dataclasses import dataclass, field

from bayplan.client.config.credentials import Anonymous, Credentials
from bayplan.client.config.tls import TlsSettings


@dataclass(frozen=True, slots=True)
class Access:
    """Where the server is, how to know it, and who we are. Its repr shows no secret."""

    server: str
    tls: TlsSettings = field(default_factory=TlsSettings)
    credentials: Credentials = field(default_factory=Anonymous, repr=False)
    proxy: str | None = field(default=None, repr=False)
    namespace: str = "default"
    impersonation: tuple[tuple[str, str], ...] = ()
