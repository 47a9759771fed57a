"""The source of a command's cluster: a dump, or a live cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bayplan.base.durations import DurationError, parse_duration
from bayplan.cli.errors import BadInput
from bayplan.cli.options.access import ClusterAccess, reaching
from bayplan.cli.options.cluster import (
    Partial,
    Source,
    load_objects,
    report_problems,
    those_left_out,
)
from bayplan.cli.text.output import printable
from bayplan.cli.text.progress import ProgressBar
from bayplan.kube.codec import DEFAULT_NAMESPACE
from bayplan.kube.manifests import LoadResult

if TYPE_CHECKING:
    from bayplan.base.values import JsonValue
    from bayplan.observe.permissions import RequiredKinds

NOT_BOTH = "give either a dump (-f) or a cluster (--context, --kubeconfig), not both"


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ClusterSource:
    """The cluster: a dump (-f), or the one that kubectl uses."""

    filename: Source = ()
    kubeconfig: Annotated[
        Path | None,
        Parameter(
            help="The kubeconfig; by default $KUBECONFIG, the pod's service account, or"
            " ~/.kube/config."
        ),
    ] = None
    context: Annotated[str | None, Parameter(help="The kubeconfig's context.")] = None
    namespace: Annotated[
        str,
        Parameter(
            alias="-n",
            show_default=False,
            help="Report only objects of this namespace; pods of all namespaces are still counted.",
        ),
    ] = ""
    all_namespaces: Annotated[
        bool, Parameter(alias="-A", negative="", help="Report all namespaces, also with -n.")
    ] = False
    request_timeout: Annotated[
        str, Parameter(help="The timeout of requests to the API server.")
    ] = "30s"
    partial: Partial = False

    @property
    def where(self) -> str:
        """The source of the objects, for messages."""
        return "dump" if self.filename else "cluster"

    @property
    def chosen(self) -> str:
        """The namespace to report; empty for all."""
        return "" if self.all_namespaces else self.namespace

    def shows(self, namespace: str) -> bool:
        """Return whether objects of a namespace are reported."""
        return self.chosen in {"", namespace}

    def home(self) -> str:
        """Return the namespace of names without one: -n, or the context's."""
        if self.namespace or self.filename:
            return self.namespace or DEFAULT_NAMESPACE
        from bayplan.client.config.loader import load_access  # noqa: PLC0415 - seldom needed

        with reaching():
            return load_access(self.kubeconfig, context=self.context).namespace

    def load(
        self,
        command: str,
        *,
        asked: str = "",
        namespace: str = "",
        progress: ProgressBar | None = None,
    ) -> LoadResult:
        """Return all objects that a command needs, by `bayplan.observe.permissions.NEEDS`.

        Invalid objects are reported on standard error; kinds that may not be read are in `unseen`.
        Kinds that may not be listed in all namespaces are read in that of -n, or else in the given
        one. BadInput if the cluster cannot be read.
        """
        if self.filename:
            if self.kubeconfig is not None or self.context is not None:
                raise BadInput(NOT_BOTH)
            shown = asked or command
            return load_objects(self.filename, shown, partial=self.partial, progress=progress)
        return self._live(_needs(command), self.chosen or namespace, progress or ProgressBar())

    def _live(self, needs: RequiredKinds, namespace: str, progress: ProgressBar) -> LoadResult:
        # Commands on dumps need no client.
        from bayplan.cli.options.live import read_live  # noqa: PLC0415

        access, patience = ClusterAccess(self.kubeconfig, self.context), self.patience()
        with progress as bar:
            report = bar.loading(0, 1)
            loaded = read_live(
                access, needs, patience=patience, namespace=namespace, progress=report
            )
        report_problems(loaded.problems)
        return loaded

    def patience(self) -> float:
        """Return the request timeout in seconds."""
        try:
            seconds = parse_duration(self.request_timeout)
        except DurationError as error:
            raise BadInput(f"--request-timeout: {error}") from None
        if not seconds:
            raise BadInput("--request-timeout: must be more than 0s")
        return seconds

    def notes(self, loaded: LoadResult, command: str) -> list[str]:
        """Return notes about incomplete input of the command."""
        left_out = len(loaded.problems)
        some = [those_left_out(left_out, self.where)] if left_out else []
        return some + [f"note: {printable(text)}" for _, text in _incomplete(loaded, command)]


HERE = ClusterSource()


def _needs(command: str) -> RequiredKinds:
    from bayplan.observe.permissions import KINDS_BY_COMMAND  # noqa: PLC0415 - not for dumps

    return KINDS_BY_COMMAND[command]


def incomplete_data(loaded: LoadResult, command: str) -> JsonValue:
    """Return what could not be read as data."""
    return [{"kind": kind, "note": text} for kind, text in _incomplete(loaded, command)]


def _incomplete(loaded: LoadResult, command: str) -> list[tuple[str, str]]:
    if not loaded.unseen:
        return []
    from bayplan.observe.permissions import about_kinds, describe_unseen  # noqa: PLC0415 - seldom needed

    return [
        (one.kind, describe_unseen(one))
        for one in about_kinds(loaded.unseen, _needs(command).kinds)
    ]
