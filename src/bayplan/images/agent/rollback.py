"""Turning `RuntimeClassInImageCriApi` off, or on again, owes a clean-up: this remembers it.

Images that were pulled while the gate was the other way may be the wrong ones: with it off, nobody
knows for which handler an image was pulled; with it on again, images that were pulled for a runtime
class sit under the default handler. So a switch on a node that holds images leaves a debt, which
stays (with a warning) until `bayplan images reset` has paid it. The gate's last state is on disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bayplan.images.runtime.objects import Image

WARNING = (
    "RuntimeClassInImageCriApi was switched while images were on this node, some may be of the "
    "wrong runtime class: run `bayplan images reset`"
)


class GateState(msgspec.Struct, frozen=True, rename="camel"):
    """How the gate was at the last start, and whether a clean-up is due."""

    enabled: bool
    clean_up_owed: bool = False


class UnreadableGateStateError(Exception):
    """The file with the gate's last state cannot be understood."""


def next_state(last: GateState | None, images: Iterable[Image], *, enabled: bool) -> GateState:
    """The state after a start: a switch leaves a debt if there is any image that could be wrong."""
    images = [image for image in images if not image.pinned]
    if last is None:
        # Nothing is known of before; a handler's image while the gate is off tells of a switch.
        return GateState(enabled, not enabled and any(image.handler for image in images))
    switched = last.enabled != enabled
    return GateState(enabled, last.clean_up_owed or (switched and bool(images)))


@dataclass(frozen=True, slots=True)
class GateLedger:
    """The gate's state on disk."""

    path: Path

    @classmethod
    def in_state_dir(cls, state_dir: Path) -> GateLedger:
        """The ledger at its usual place."""
        return cls(state_dir / "image_manager" / "gate.json")

    def read(self) -> GateState | None:
        """The last state, or None if there was none."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=GateState)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnreadableGateStateError(f"{self.path}: {error}") from error

    def started(self, images: Iterable[Image], *, enabled: bool) -> GateState:
        """Note a start with the gate so; returns whether a clean-up is owed now."""
        state = next_state(self.read(), images, enabled=enabled)
        self._write(state)
        return state

    def settle(self) -> None:
        """The clean-up is done."""
        state = self.read()
        if state is not None:
            self._write(GateState(state.enabled))

    @property
    def owed(self) -> bool:
        """Whether a clean-up is due."""
        state = self.read()
        return state is not None and state.clean_up_owed

    def _write(self, state: GateState) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(".tmp")
        with unfinished.open("wb") as file:
            file.write(msgspec.json.encode(state))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self.path)
