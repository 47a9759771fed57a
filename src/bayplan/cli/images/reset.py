"""`bayplan images reset`: the clean-up after RuntimeClassInImageCriApi was switched, in one go."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from cyclopts import Parameter

from bayplan.base.clock import WallClock
from bayplan.base.values import JsonValue
from bayplan.cli.errors import EXIT_NO, EXIT_OK, BadInput
from bayplan.cli.images.connection import Connection, with_runtime
from bayplan.cli.images.output import Format, complain, say, show_data, warn
from bayplan.cli.options.access import ClusterAccess
from bayplan.cli.options.flags import Switch
from bayplan.client.errors import ClientError
from bayplan.images.agent.housekeeping import GateLedger, UnreadableGateStateError
from bayplan.images.agent.live import LiveWorkloads
from bayplan.images.agent.reset import PATIENCE, Reset, ResetReport
from bayplan.images.credentials.memory import PullMemory, Verification
from bayplan.images.credentials.records import RecordFiles
from bayplan.images.runtime.cri import CriRuntime


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Scope:
    """What is cleaned up."""

    node: str = ""
    """Restart this node's pods that have a runtime class; without it no pod is touched."""
    bare_pods: Switch = False
    """Also delete pods that no controller would bring back."""
    patience: float = PATIENCE
    """Seconds to wait for the pods' images to be out of use."""


async def reset(
    *,
    connection: Connection | None = None,
    cluster: ClusterAccess | None = None,
    scope: Scope | None = None,
    output: Format = "table",
    dry_run: Switch = False,
) -> int:
    """Clean up after the gate RuntimeClassInImageCriApi was switched.

    Parameters
    ----------
    output
        For people, or for programs.
    dry_run
        Only show what would be done.
    """
    scope, connection = scope or Scope(), connection or Connection()
    access, state_dir = cluster or ClusterAccess(), connection.state_dir

    async def work(cri: CriRuntime) -> int:
        async with AsyncExitStack() as stack:
            workloads = None
            if scope.node:
                workloads = LiveWorkloads(await stack.enter_async_context(access.connect()))
            report = await _reset(cri, workloads, scope, state_dir).run(dry_run=dry_run)
        _show(report, scope, output, dry_run=dry_run)
        return EXIT_OK if report.complete else EXIT_NO

    try:
        return await with_runtime(connection, work)
    except ClientError as error:
        complain(str(error))
        return EXIT_NO
    except (OSError, UnreadableGateStateError) as error:
        raise BadInput(f"--state-dir {state_dir}: {error}") from error


def _reset(
    cri: CriRuntime, workloads: LiveWorkloads | None, scope: Scope, state_dir: Path
) -> Reset:
    clock = WallClock()
    return Reset(
        runtime=cri,
        memory=PullMemory(RecordFiles(state_dir), Verification(), clock),
        ledger=GateLedger.in_state_dir(state_dir),
        clock=clock,
        workloads=workloads,
        node=scope.node,
        without_controller=scope.bare_pods,
        patience=scope.patience,
    )


def _show(report: ResetReport, scope: Scope, output: str, *, dry_run: bool) -> None:
    if output != "table":
        show_data(_data(report, dry_run=dry_run), output)
        return
    would = "would be " if dry_run else ""
    for pod in report.pods.restart:
        say(f"pod {pod.key}: {would}restarted")
    for key in report.removed:
        say(f"image {key}: {would}removed")
    say(f"pull records: {'would be ' if dry_run else f'{report.records_forgotten} '}forgotten")
    for pod in report.pods.leave:
        warn(f"pod {pod.key}: left alone, no controller would bring it back (see --bare-pods)")
    for key in report.remaining:
        warn(f"image {key}: {report.failed.get(key, 'still in use')}")
    if not scope.node:
        warn("no pods were restarted; name the node with --node")


def _data(report: ResetReport, *, dry_run: bool) -> dict[str, JsonValue]:
    return {
        "dryRun": dry_run,
        "complete": report.complete,
        "restarted": [pod.key for pod in report.pods.restart],
        "leftAlone": [pod.key for pod in report.pods.leave],
        "removed": [{"id": key.id, "runtimeHandler": key.handler} for key in report.removed],
        "remaining": [{"id": key.id, "runtimeHandler": key.handler} for key in report.remaining],
        "failed": {str(key): problem for key, problem in report.failed.items()},
        "recordsForgotten": report.records_forgotten,
    }
