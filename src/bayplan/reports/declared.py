"""Node groups declared in the file of --groups."""

from __future__ import annotations

from pathlib import Path

from bayplan.autoscaler.providers.declared.declaration import Declaration
from bayplan.autoscaler.providers.declared.sources import read_groups
from bayplan.base.configfiles import ConfigFileError
from bayplan.base.errors import InputError


def declared_groups(file: Path | None) -> tuple[Declaration, ...]:
    """Return the groups of a file, none without one; InputError if the file is invalid."""
    try:
        return read_groups(file) if file is not None else ()
    except ConfigFileError as error:
        raise InputError(str(error)) from None
