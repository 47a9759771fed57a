"""Logs of daemons on standard error: one line per record, as text or as JSON.

The objects of a record are fields (`extra={"pod": ..., "node": ...}`); in text they follow the
message.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Literal

LogFormat = Literal["text", "json"]
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class TextFormatter(logging.Formatter):
    """Formats a record as a line of text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time, level, logger, message and fields."""
        fields = "".join(f" {name}={value}" for name, value in _fields(record).items())
        text = record.getMessage().replace("\n", "\\n")
        line = f"{_timestamp(record)} {record.levelname} {record.name}: {text}{fields}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the same as a JSON object."""
        fields = {
            "ts": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str, ensure_ascii=False)


def log_to_stderr(log_format: LogFormat, *, verbose: bool) -> None:
    """Write all logs of this process in that format; our own at debug level if verbose."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("bayplan").setLevel(logging.DEBUG if verbose else logging.INFO)


def log_plainly() -> None:
    """Write logs of this process without times and fields, as daemons on nodes do."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS}


def _timestamp(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
