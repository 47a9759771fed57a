"""Which cluster a command talks to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import Parameter

from bayplan.cli.errors import BadInput
from bayplan.client.errors import ConfigError

if TYPE_CHECKING:
    from bayplan.client.client import Client, Tuning


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The API server to talk to."""

    kubeconfig: Path | None = None
    """The kubeconfig; else $KUBECONFIG, the pod's service account, or ~/.kube/config."""
    context: str | None = None
    """The kubeconfig's context."""

    def connect(self, tuning: Tuning | None = None) -> Client:
        """A client of the cluster."""
        # Commands about dumps have this class too, and need no client.
        from bayplan.client.client import connect  # noqa: PLC0415

        try:
            return connect(self.kubeconfig, context=self.context, tuning=tuning)
        except ConfigError as error:
            raise BadInput(str(error)) from error
