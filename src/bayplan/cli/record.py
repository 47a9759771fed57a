"""`bayplan record`: record a live cluster's changes to a file."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bayplan.base.clock import Clock
from bayplan.base.durations import DurationError, parse_duration
from bayplan.cli.errors import EXIT_INTERRUPTED, EXIT_OK, BadInput
from bayplan.cli.options.access import ClusterAccess
from bayplan.cli.options.live import ask, log_errors_only, request_seconds
from bayplan.cli.text.output import notices, printable
from bayplan.client.client import Client, ClientOptions
from bayplan.client.signals import run_until_signal
from bayplan.observe.recorder import ClusterRecorder
from bayplan.recordings import RecordingFullError, RecordingWriter

HERE = ClusterAccess()
_SIZE = re.compile(r"(\d{1,9})(B|KiB|MiB|GiB|TiB)?")
_UNITS = {"": 0, "B": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}
LEAST = 1 << 20


def record(
    *,
    output: Annotated[Path | None, Parameter(("--output", "-o"))] = None,
    for_: Annotated[str | None, Parameter("--for")] = None,
    most: str = "2GiB",
    access: ClusterAccess = HERE,
    request_timeout: str = "30s",
) -> int:
    """Record a live cluster's changes to a file, for replay with `bayplan ui` and as a workload of
    `bayplan simulate`.

    It needs read permissions only; kinds that may not be read are left out and reported. Commands,
    arguments, environment variables, secrets and annotations that affect no decision are not
    recorded; names, labels and images are. The file is complete up to the last second, however the
    recording ends.

    Exit codes: 0 it was recorded until the end or until interrupted, 2 bad input, 130 interrupted
    before the cluster was read, without a file.

    Parameters
    ----------
    output
        The file to write, which must not exist; by default named after the current time.
    for_
        Stop after this time, such as 2h; by default record until interrupted.
    most
        Stop when the file has this size.
    request_timeout
        How long the cluster may take to respond at first; kinds that take longer are recorded as
        soon as they are available.
    """
    path = output or Path(f"{datetime.now(UTC):%Y%m%d-%H%M%S}.bpr")
    seconds, limit = _seconds(for_), _size(most)

    def opened(clock: Clock) -> RecordingWriter:
        name = access.context or "the current context"
        return RecordingWriter(path, name=name, start=clock.now(), most_bytes=limit)

    log_errors_only()
    wait = request_seconds(request_timeout)
    recorder = ClusterRecorder(opened, report=_notice, sync_timeout=wait)
    with _writing(path):
        ask(
            access,
            lambda client: _recorded(client, recorder, seconds),
            wait,
            ClientOptions(),
            takes_dumps=False,
        )
    if not recorder.has_started:
        _notice(f"{path}: nothing was recorded: interrupted before the cluster was read")
        return EXIT_INTERRUPTED
    sys.stdout.write(f"{path}: {recorder.changes} changes\n")
    return EXIT_OK


async def _recorded(client: Client, recorder: ClusterRecorder, seconds: float | None) -> None:
    try:
        await run_until_signal(recorder.lead(client, seconds))
    except RecordingFullError as full:
        _notice(str(full))


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise BadInput(f"{path}: already exists; give another name with -o") from None
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None


def _notice(text: str) -> None:
    notices().print(printable(text), style="yellow")


def _seconds(text: str | None) -> float | None:
    try:
        seconds = None if text is None else parse_duration(text)
    except DurationError as error:
        raise BadInput(f"--for: {error}") from None
    if seconds is not None and seconds <= 0:
        raise BadInput(f"--for {printable(text or '')}: must be more than 0s")
    return seconds


def _size(text: str) -> int:
    found = _SIZE.fullmatch(text)
    size = int(found[1]) << _UNITS[found[2] or ""] if found else 0
    if size < LEAST:
        raise BadInput(
            f"--most {printable(text[:40])}: must be at least 1MiB, such as 500MiB or 2GiB"
        )
    return size
