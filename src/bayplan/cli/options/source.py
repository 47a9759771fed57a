"""Where a command has the cluster from that it is asked about: a dump, or the cluster itself."""

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
from bayplan.cli.text.progress import Bar
from bayplan.kube.codec import DEFAULT_NAMESPACE
from bayplan.kube.loading import Loaded

if TYPE_CHECKING:
    from bayplan.base.values import JsonValue
    from bayplan.observe.permissions import Needs

NOT_BOTH = "give a dump with -f, or a cluster with --context or --kubeconfig, not both"


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ClusterSource:
    """The cluster that is asked about: a dump (-f), or the one that kubectl would talk to."""

    filename: Source = ()
    kubeconfig: Annotated[
        Path | None,
        Parameter(help="The kubeconfig; else $KUBECONFIG, the pod's own, or ~/.kube/config."),
    ] = None
    context: Annotated[str | None, Parameter(help="The kubeconfig's context.")] = None
    namespace: Annotated[
        str,
        Parameter(
            alias="-n",
            show_default=False,
            help="The namespace of what is asked about and shown; what fits is judged by the pods"
            " of all namespaces.",
        ),
    ] = ""
    all_namespaces: Annotated[
        bool, Parameter(alias="-A", negative="", help="All namespaces, whatever -n says.")
    ] = False
    request_timeout: Annotated[
        str, Parameter(help="How long an answer of the API server may take.")
    ] = "30s"
    partial: Partial = False

    @property
    def where(self) -> str:
        """What the objects are in."""
        return "dump" if self.filename else "cluster"

    @property
    def chosen(self) -> str:
        """The namespace that was asked for; empty for all."""
        return "" if self.all_namespaces else self.namespace

    def shows(self, namespace: str) -> bool:
        """Whether what is in that namespace was asked for."""
        return self.chosen in {"", namespace}

    def home(self) -> str:
        """The namespace of names that do not say their own: -n, or the context's."""
        if self.namespace or self.filename:
            return self.namespace or DEFAULT_NAMESPACE
        from bayplan.client.config.loading import load_access  # noqa: PLC0415 - seldom needed

        with reaching():
            return load_access(self.kubeconfig, context=self.context).namespace

    def load(
        self,
        command: str,
        *,
        asked: str = "",
        namespace: str = "",
        progress: Bar | None = None,
    ) -> Loaded:
        """All objects that a command (as `bayplan.observe.permissions.NEEDS` has it) needs.

        What of them cannot be used is told on standard error, what may not be read is in `unseen`.
        Of kinds that may not be listed in all namespaces, those of one are read: that of -n, or
        else the one given. BadInput if there is no answer.
        """
        if self.filename:
            if self.kubeconfig is not None or self.context is not None:
                raise BadInput(NOT_BOTH)
            said = asked or command
            return load_objects(self.filename, said, partial=self.partial, progress=progress)
        return self._live(_needs(command), self.chosen or namespace, progress or Bar())

    def _live(self, needs: Needs, namespace: str, progress: Bar) -> Loaded:
        # Most questions are about dumps, and need no client.
        from bayplan.cli.options.live import read_live  # noqa: PLC0415

        access, patience = ClusterAccess(self.kubeconfig, self.context), self.patience()
        with progress as bar:
            told = bar.loading(0, 1)
            loaded = read_live(access, needs, patience=patience, namespace=namespace, progress=told)
        report_problems(loaded.problems)
        return loaded

    def patience(self) -> float:
        """Seconds that an answer may take."""
        try:
            seconds = parse_duration(self.request_timeout)
        except DurationError as error:
            raise BadInput(f"--request-timeout: {error}") from None
        if not seconds:
            raise BadInput("--request-timeout: nothing can be answered in no time")
        return seconds

    def notes(self, loaded: Loaded, command: str) -> list[str]:
        """What an answer of that command rests on less than it should, for people."""
        left_out = len(loaded.problems)
        some = [those_left_out(left_out, self.where)] if left_out else []
        return some + [f"note: {printable(text)}" for _, text in _incomplete(loaded, command)]


HERE = ClusterSource()


def _needs(command: str) -> Needs:
    from bayplan.observe.permissions import NEEDS  # noqa: PLC0415 - not for dumps

    return NEEDS[command]


def incomplete_data(loaded: Loaded, command: str) -> JsonValue:
    """What could not be read, for programs."""
    return [{"kind": kind, "note": text} for kind, text in _incomplete(loaded, command)]


def _incomplete(loaded: Loaded, command: str) -> list[tuple[str, str]]:
    if not loaded.unseen:
        return []
    from bayplan.observe.permissions import concerning, note_of  # noqa: PLC0415 - seldom needed

    return [(one.kind, note_of(one)) for one in concerning(loaded.unseen, _needs(command).kinds)]
