"""Where declarations come from: a file, read once, and NodeGroup objects, followed.

A group that is declared twice is as the file says, or else as the object says whose name comes
first; the others are told that they do not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bayplan.autoscaler.providers.declared.declaration import Declaration, declare
from bayplan.autoscaler.providers.following import Following
from bayplan.client import Change, Informer, Untyped, untyped_kind
from bayplan.client.events.recorder import reference_to
from bayplan.client.objects import name_of
from bayplan.nodegroups import GroupProblem

NODE_GROUPS = untyped_kind("NodeGroup")


class FileDeclarations:
    """What a file declares."""

    def __init__(self, declarations: Sequence[Declaration]) -> None:
        self._by_group = {one.group: one for one in declarations}

    def by_group(self) -> Mapping[str, Declaration]:
        """All of them."""
        return self._by_group

    def problems(self) -> Sequence[GroupProblem]:
        """None: a file with problems is refused."""
        return ()

    async def refresh(self) -> None:
        """A file is read once."""


class ObjectDeclarations:
    """What a file and the cluster's NodeGroups declare together."""

    def __init__(self, informer: Informer[Untyped], file: Sequence[Declaration] = ()) -> None:
        self._following = Following([informer])
        self._file = {one.group: one for one in file}
        self._objects: dict[str, Declaration] = {}
        self._merged: dict[str, Declaration] | None = None
        self._problems: list[GroupProblem] = []
        informer.on_change(self._changed)

    def by_group(self) -> Mapping[str, Declaration]:
        """Each group as the first says who declares it."""
        if self._merged is None:
            self._merged = self._merge()
        return self._merged

    def problems(self) -> Sequence[GroupProblem]:
        """Those who declare what others have declared before."""
        self.by_group()
        return self._problems

    async def refresh(self) -> None:
        """Wait for the objects, the first time; UnavailableError if they cannot be had."""
        await self._following.synced("NodeGroups")

    def _changed(self, change: Change[Untyped]) -> None:
        self._merged = None
        if change.type == "deleted":
            self._objects.pop(change.key, None)
        else:
            self._objects[change.key] = _declared(change.object)

    def _merge(self) -> dict[str, Declaration]:
        merged = dict(self._file)
        self._problems = []
        for name in sorted(self._objects):
            one = self._objects[name]
            first = merged.setdefault(one.group, one)
            if first is not one:
                text = f"it is declared already, by {_author(first)}; this does not count"
                self._problems.append(GroupProblem(one.group, text, one.about))
        return merged


def _declared(item: Untyped) -> Declaration:
    spec = item.get("spec")
    return declare(name_of(item), spec if isinstance(spec, dict) else {}, "", reference_to(item))


def _author(one: Declaration) -> str:
    return "a file" if one.about is None else f"NodeGroup {one.about.name}"
