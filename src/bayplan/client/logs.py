"""Logs of daemons, on standard error: a line each, as text or as JSON.

What a line is about comes with it as fields (`extra={"pod": ..., "node": ...}`); as text they
follow the message.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Literal

LogFormat = Literal["text", "json"]
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class TextFormatter(logging.Formatter):
    """A line for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, who says what, and the fields."""
        fields = "".join(f" {name}={value}" for name, value in _fields(record).items())
        text = record.getMessage().replace("\n", "\\n")
        line = f"{_moment(record)} {record.levelname} {record.name}: {text}{fields}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """An object in a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The same as fields."""
        said = {
            "ts": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return json.dumps(said, default=str, ensure_ascii=False)


def log_to_stderr(log_format: LogFormat, *, verbose: bool) -> None:
    """Have all logs of this process written like that; our own in detail if verbose."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("bayplan").setLevel(logging.DEBUG if verbose else logging.INFO)


def log_plainly() -> None:
    """Have logs of this process written without times and fields, as node daemons do."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _USUAL}


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
