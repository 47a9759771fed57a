"""A change of one object, as it is told to those who wait for changes."""

from __future__ import annotations

from typing import Literal

import msgspec

from bayplan.kube.meta import KubeObject

Action = Literal["added", "updated", "deleted"]


class Event(msgspec.Struct, frozen=True):
    """An object came, changed or went."""

    kind: type[KubeObject]
    action: Action
    before: KubeObject | None = None
    after: KubeObject | None = None

    @classmethod
    def of(cls, before: KubeObject | None, after: KubeObject | None) -> Event:
        """The event that leads from one state of an object to another."""
        if after is None:
            if before is None:
                raise ValueError("an event is about an object")
            return cls(type(before), "deleted", before)
        return cls(type(after), "updated" if before else "added", before, after)

    @property
    def key(self) -> str:
        """The object's key."""
        subject = self.after or self.before
        return subject.key if subject is not None else ""
