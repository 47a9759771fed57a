"""`--record`: a run once more, with somebody who keeps its changes in a file."""

from __future__ import annotations

import logging
from pathlib import Path

from bayplan.cli.errors import BadInput, Unwritable
from bayplan.lab.lab import DaemonFailedError
from bayplan.lab.simulating.orders import Order
from bayplan.lab.simulating.running import carry_out
from bayplan.observe.recorder import Recorder
from bayplan.recordings import RecordingWriter

FLUSH_SECONDS = 600.0
"""Of virtual time; nobody reads the file meanwhile."""


def check_place(path: Path | None) -> None:
    """BadInput if no recording can be made there, which is better said before all runs."""
    if path is not None and path.exists():
        raise BadInput(f"--record {path}: is there already")
    if path is not None and not path.parent.is_dir():
        raise BadInput(f"--record {path}: there is no folder {path.parent}")


def recorded(order: Order, path: Path) -> None:
    """Make the run again, into that file."""
    logging.disable(logging.CRITICAL)
    recorder = Recorder(
        lambda clock: RecordingWriter(path, name=order.title, start=clock.now()),
        flush_seconds=FLUSH_SECONDS,
    )
    try:
        carry_out(order, beside=[recorder.lead])
    except DaemonFailedError as problem:
        raise Unwritable(f"--record {path}: {problem.__cause__}") from problem
    finally:
        logging.disable(logging.NOTSET)
