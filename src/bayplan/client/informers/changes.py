"""What an informer tells: an object came, changed, or went."""

from __future__ import annotations

from typing import Generic, Literal

import msgspec

from bayplan.client.objects import key_of
from bayplan.client.resources import T


class Change(msgspec.Struct, Generic[T], frozen=True):
    """One step in an object's life.

    `old` is what we knew before, `new` what the server says now. Of a deleted object `new` is its
    last state, if the server told us; it did not if the object went while we were not watching.
    """

    type: Literal["added", "updated", "deleted"]
    old: T | None = None
    new: T | None = None

    @property
    def object(self) -> T:
        """The newest state known."""
        newest = self.new if self.new is not None else self.old
        assert newest is not None, "a change is about an object"  # noqa: S101
        return newest

    @property
    def key(self) -> str:
        """Which object it is about."""
        return key_of(self.object)
