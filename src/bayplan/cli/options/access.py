"""The API server of a command, and what to do next if it cannot be reached."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import Parameter

from bayplan.cli.errors import BadInput
from bayplan.cli.text.output import printable
from bayplan.client.errors import (
    ClientError,
    ConfigError,
    DisconnectedError,
    ForbiddenError,
    MalformedError,
    NotFoundError,
    TimedOutError,
    TooLargeError,
    UnauthorizedError,
    UnreachableError,
    UntrustedError,
)

if TYPE_CHECKING:
    from bayplan.client.client import Client, ClientOptions


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The API server."""

    kubeconfig: Path | None = None
    """The kubeconfig; by default $KUBECONFIG, the pod's service account, or ~/.kube/config."""
    context: str | None = None
    """The kubeconfig's context."""

    def connect(self, options: ClientOptions | None = None) -> Client:
        """Return a client of the cluster."""
        # Commands on dumps have these options too, and need no client.
        from bayplan.client.client import connect  # noqa: PLC0415

        try:
            return connect(self.kubeconfig, context=self.context, options=options)
        except ConfigError as error:
            raise BadInput(str(error)) from error


_OR_DUMP = "or give a dump with -f FILE"
_NEXT: tuple[tuple[type[ClientError], str], ...] = (
    (
        UntrustedError,
        "check certificate-authority-data of this cluster in the kubeconfig, or fetch it anew",
    ),
    (
        UnreachableError,
        "is the cluster up, and the right one? `kubectl config view --minify` shows its server",
    ),
    (TimedOutError, "the server does not respond; raise --request-timeout to wait longer"),
    (DisconnectedError, "the connection was interrupted; try again"),
    (
        UnauthorizedError,
        "the token or certificate in the kubeconfig is unknown or has expired; log in again",
    ),
    (ForbiddenError, "ask for the permissions of docs/live.md, or try another --context"),
    (
        NotFoundError,
        "this does not look like a Kubernetes API server; check the server in the kubeconfig",
    ),
    (
        MalformedError,
        "this does not look like a Kubernetes API server; check the server in the kubeconfig",
    ),
    (TooLargeError, "this is not an API server's response; check the server in the kubeconfig"),
    (ConfigError, _OR_DUMP),
)
"""What to do next, by type of error; the first match applies."""


@contextmanager
def reaching(server: str = "", *, takes_dumps: bool = True) -> Iterator[None]:
    """Convert client errors to BadInput with what to do next."""
    try:
        yield
    except ClientError as error:
        raise BadInput(printable(explained(error, server, takes_dumps=takes_dumps))) from error


def explained(error: ClientError, server: str = "", *, takes_dumps: bool = True) -> str:
    """Return the server, its error, and what to do next."""
    message = ": ".join(filter(None, (server, str(error))))
    steps = (text for kind, text in _NEXT if isinstance(error, kind))
    next_step = next((text for text in steps if takes_dumps or text != _OR_DUMP), "")
    return f"{message}; {next_step}" if next_step else message
