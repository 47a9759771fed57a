"""`bayplan record`: a live cluster's changes, kept in a file."""

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
from bayplan.cli.options.live import ask
from bayplan.cli.text.output import notices, printable
from bayplan.cli.ui import patience, quiet
from bayplan.client.client import Client, Tuning
from bayplan.client.signals import until_signalled
from bayplan.observe.recorder import Recorder
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
    """Keep a live cluster's changes in a file: what `bayplan ui` plays, and `bayplan simulate` may
    take its workload from.

    Only reading is needed, and what may not be read is left out and said. Commands, arguments,
    environments and secrets are not recorded, nor annotations that decide nothing; names, labels
    and images are. The file is whole up to the last second however this ends.

    Exit codes: 0 it was recorded until the end, or until interrupted, 2 bad input, 130 it was
    interrupted before the cluster was read, and there is no file.

    Parameters
    ----------
    output
        The file to write, which must not be there yet; without it, one named after the time.
    for_
        End after recording this long, such as 2h; without it, record until interrupted.
    most
        End when the file is as large as this.
    request_timeout
        How long the cluster may take to answer at first; kinds that it cannot tell by then are
        recorded from when it can.
    """
    path = output or Path(f"{datetime.now(UTC):%Y%m%d-%H%M%S}.bpr")
    seconds, limit = _seconds(for_), _size(most)

    def opened(clock: Clock) -> RecordingWriter:
        name = access.context or "the current context"
        return RecordingWriter(path, name=name, start=clock.now(), most_bytes=limit)

    quiet()
    wait = patience(request_timeout)
    recorder = Recorder(opened, tell=_tell, patience=wait)
    with _writing(path):
        ask(
            access,
            lambda client: _recorded(client, recorder, seconds),
            wait,
            Tuning(),
            takes_dumps=False,
        )
    if not recorder.has_begun:
        _tell(f"{path}: nothing was recorded: interrupted before the cluster was read")
        return EXIT_INTERRUPTED
    sys.stdout.write(f"{path}: {recorder.changes} changes\n")
    return EXIT_OK


async def _recorded(client: Client, recorder: Recorder, seconds: float | None) -> None:
    try:
        await until_signalled(recorder.lead(client, seconds))
    except RecordingFullError as full:
        _tell(str(full))


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise BadInput(f"{path}: is there already; give another name with -o") from None
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None


def _tell(text: str) -> None:
    notices().print(printable(text), style="yellow")


def _seconds(text: str | None) -> float | None:
    try:
        seconds = None if text is None else parse_duration(text)
    except DurationError as error:
        raise BadInput(f"--for: {error}") from None
    if seconds is not None and seconds <= 0:
        raise BadInput(f"--for {printable(text or '')}: nothing happens in no time")
    return seconds


def _size(text: str) -> int:
    found = _SIZE.fullmatch(text)
    size = int(found[1]) << _UNITS[found[2] or ""] if found else 0
    if size < LEAST:
        raise BadInput(f"--most {printable(text[:40])}: such as 500MiB or 2GiB, and at least 1MiB")
    return size
