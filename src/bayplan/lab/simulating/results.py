"""Where results go as they come: a file a run, found again by all that the run depended on.

A run that is there already need not be made again. A file is written beside its place and then
moved there, so that it is whole or not there at all; one that cannot be read is as if it were not.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from bayplan.lab.measuring import Measured
from bayplan.lab.simulating.orders import Order, key_of

encode = msgspec.json.Encoder(order="deterministic").encode
_decoder = msgspec.json.Decoder(Measured)


class Results:
    """The results of runs in a folder."""

    def __init__(self, folder: Path, version: str) -> None:
        self._folder = folder
        self._version = version

    def path(self, order: Order) -> Path:
        """Where the result of a run is, or will be."""
        return self._folder / f"run-{key_of(order, self._version)}.json"

    def find(self, order: Order) -> Measured | None:
        """The result of a run, if it is there."""
        try:
            return decode(self.path(order).read_bytes())
        except (OSError, msgspec.DecodeError):
            return None

    def keep(self, order: Order, measured: Measured) -> None:
        """Have a result found."""
        path = self.path(order)
        beside = path.with_suffix(".part")
        beside.write_bytes(encode(measured))
        beside.replace(path)


def decode(data: bytes) -> Measured:
    """A result as it was kept; msgspec.DecodeError if it is none."""
    return _decoder.decode(data)
