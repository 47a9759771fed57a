"""Which cluster a command talks to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cyclopts import Parameter

from bayplan.cli.errors import BadInput
from bayplan.client.client import Client, Tuning, connect
from bayplan.client.errors import ConfigError


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
        try:
            return connect(self.kubeconfig, context=self.context, tuning=tuning)
        except ConfigError as error:
            raise BadInput(str(error)) from error
