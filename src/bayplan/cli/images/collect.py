"""`bayplan images gc`: one round of garbage collection, by (image, runtime handler)."""

from __future__ import annotations

from datetime import timedelta

from bayplan.base.clock import WallClock
from bayplan.base.values import JsonValue
from bayplan.cli.errors import EXIT_NO, EXIT_OK, BadInput
from bayplan.cli.images.connection import RuntimeConnection, with_runtime
from bayplan.cli.images.output import (
    Format,
    complain,
    human_size,
    say,
    show_data,
    show_table,
    shown_handler,
)
from bayplan.cli.options.flags import Switch
from bayplan.images.image_gc import (
    ImageGCManager,
    ImageGCPolicy,
    ImageGCResult,
    InvalidDiskCapacityError,
    probe_disk,
)
from bayplan.images.runtime.cri import CriRuntime
from bayplan.images.runtime.objects import with_gate


async def collect(  # noqa: PLR0913 - one for each option of the command
    *,
    connection: RuntimeConnection | None = None,
    output: Format = "table",
    high: int = 85,
    low: int = 80,
    unused: Switch = False,
    dry_run: Switch = False,
) -> int:
    """Remove unused images if the disk usage is over the threshold.

    Parameters
    ----------
    output
        The output format.
    high
        Percent of disk usage from which images are removed.
    low
        Percent of disk usage down to which images are removed.
    unused
        Remove all unused images, at any disk usage.
    dry_run
        Only show what would be removed.
    """
    connection = connection or RuntimeConnection()
    try:
        policy = ImageGCPolicy(high, low, minimum_age=timedelta(0))
    except ValueError as error:
        raise BadInput(str(error)) from error

    async def work(cri: CriRuntime) -> int:
        seen = with_gate(cri, enabled=connection.use_handlers)
        collector = ImageGCManager(seen, WallClock(), policy, probe_disk)
        round_of = collector.remove_unused if unused else collector.collect
        try:
            outcome = await round_of(dry_run=dry_run)
        except InvalidDiskCapacityError as error:
            complain(str(error))
            return EXIT_NO
        _show(outcome, await cri.default_handler(), output, dry_run=dry_run)
        return EXIT_NO if outcome.failed or outcome.is_short_of_space else EXIT_OK

    return await with_runtime(connection, work)


def _show(outcome: ImageGCResult, default_handler: str, output: str, *, dry_run: bool) -> None:
    if output != "table":
        show_data(_data(outcome, dry_run=dry_run), output)
        return
    rows = [
        [
            each.record.key.id,
            shown_handler(each.record.key.handler, default_handler),
            human_size(each.record.size),
            each.reason.value,
        ]
        for each in outcome.removed
    ]
    if rows:
        show_table(["IMAGE ID", "RUNTIME", "SIZE", "REASON"], rows)
    verb = "would free" if dry_run else "freed"
    wanted = f" of {human_size(outcome.bytes_wanted)} wanted" if outcome.bytes_wanted else ""
    say(f"{verb} {human_size(outcome.bytes_freed)}{wanted}")
    for key, problem in outcome.failed.items():
        complain(f"{key}: {problem}")


def _data(outcome: ImageGCResult, *, dry_run: bool) -> dict[str, JsonValue]:
    disk = outcome.disk
    return {
        "dryRun": dry_run,
        "usedPercent": disk.used_percent if disk else None,
        "bytesWanted": outcome.bytes_wanted,
        "bytesFreed": outcome.bytes_freed,
        "removed": [
            {
                "id": candidate.record.key.id,
                "runtimeHandler": candidate.record.key.handler,
                "size": candidate.record.size,
                "reason": candidate.reason.value,
            }
            for candidate in outcome.removed
        ],
        "failed": {str(key): problem for key, problem in outcome.failed.items()},
    }
