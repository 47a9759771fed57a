"""`bayplan images reset`: clean up after RuntimeClassInImageCriApi was changed."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from cyclopts import Parameter

from bayplan.base.clock import WallClock
from bayplan.base.values import JsonValue
from bayplan.cli.errors import EXIT_NO, EXIT_OK, BadInput
from bayplan.cli.images.connection import RuntimeConnection, with_runtime
from bayplan.cli.images.output import Format, complain, say, show_data, warn
from bayplan.cli.options.access import ClusterAccess
from bayplan.cli.options.flags import Switch
from bayplan.client.errors import ClientError
from bayplan.images.agent.image_gc_loop import GateStateFile, UnreadableGateStateError
from bayplan.images.agent.live import LiveNodePods
from bayplan.images.agent.reset import WAIT_SECONDS, ImageReset, ResetReport
from bayplan.images.credentials.pull_manager import CredentialVerification, ImagePullManager
from bayplan.images.credentials.records import PullRecordFiles
from bayplan.images.runtime.cri import CriRuntime


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ResetScope:
    """What is cleaned up."""

    node: str = ""
    """Restart this node's pods that have a runtime class; by default no pods are restarted."""
    bare_pods: Switch = False
    """Also delete pods without a controller, which are not recreated."""
    patience: float = WAIT_SECONDS
    """Seconds to wait until the pods' images are no longer in use."""


async def reset(
    *,
    connection: RuntimeConnection | None = None,
    cluster: ClusterAccess | None = None,
    scope: ResetScope | None = None,
    output: Format = "table",
    dry_run: Switch = False,
) -> int:
    """Clean up after the feature gate RuntimeClassInImageCriApi was changed.

    Parameters
    ----------
    output
        The output format.
    dry_run
        Only show what would be done.
    """
    scope, connection = scope or ResetScope(), connection or RuntimeConnection()
    access, state_dir = cluster or ClusterAccess(), connection.state_dir

    async def work(cri: CriRuntime) -> int:
        async with AsyncExitStack() as stack:
            workloads = None
            if scope.node:
                workloads = LiveNodePods(await stack.enter_async_context(access.connect()))
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
    cri: CriRuntime, workloads: LiveNodePods | None, scope: ResetScope, state_dir: Path
) -> ImageReset:
    clock = WallClock()
    return ImageReset(
        runtime=cri,
        pull_manager=ImagePullManager(PullRecordFiles(state_dir), CredentialVerification(), clock),
        gate_file=GateStateFile.in_state_dir(state_dir),
        clock=clock,
        workloads=workloads,
        node=scope.node,
        without_controller=scope.bare_pods,
        wait_seconds=scope.patience,
    )


def _show(report: ResetReport, scope: ResetScope, output: str, *, dry_run: bool) -> None:
    if output != "table":
        show_data(_data(report, dry_run=dry_run), output)
        return
    would = "would be " if dry_run else ""
    for pod in report.pods.restart:
        say(f"pod {pod.key}: {would}restarted")
    for key in report.removed:
        say(f"image {key}: {would}removed")
    say(f"pull records: {'would be ' if dry_run else f'{report.records_forgotten} '}deleted")
    for pod in report.pods.leave:
        warn(f"pod {pod.key}: not deleted, since it has no controller (see --bare-pods)")
    for key in report.remaining:
        warn(f"image {key}: {report.failed.get(key, 'still in use')}")
    if not scope.node:
        warn("no pods were restarted; give the node with --node")


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
