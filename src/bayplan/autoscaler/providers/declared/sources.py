"""Sources of declarations: a file, read once, and NodeGroup objects, watched.

A file has `nodeGroups`, a list of declarations, each with the group's name. It is read strictly:
the first problem is an error with its line.

Of a group that is declared twice, the file's declaration is used, or else the object's with the
first name; the others get a problem. Problems of NodeGroups are written into their status:

    status:
      observedGeneration: 3
      problems: ["csiDrivers.ebs.csi.aws.com: 'many': the limit must be a whole number, or none"]
      conditions: [{type: Accepted, status: "False", reason: HasProblems, ...}]

Only a changed status is written. If that fails, it is retried in the next loop.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from bayplan.autoscaler.providers.declared.declaration import Declaration, declare
from bayplan.autoscaler.providers.informers import SyncedInformers
from bayplan.base.configfiles import FieldProblem, parse, read_text
from bayplan.client import Change, Client, Informer, Untyped, merge, untyped_kind
from bayplan.client.errors import ClientError
from bayplan.client.events import reference_to
from bayplan.client.objects import name_of, uid_of
from bayplan.kube.configvalues import Section, check_unique
from bayplan.kube.times import timestamp
from bayplan.nodegroups import GroupProblem

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class _Named(msgspec.Struct):
    name: _Name


class _File(Section):
    node_groups: list[dict[str, object]]


def read_groups(path: Path) -> tuple[Declaration, ...]:
    """Read the declarations of a file; ConfigFileError if it is invalid."""
    return parse_groups(read_text(path), str(path))


def parse_groups(text: bytes, source: str) -> tuple[Declaration, ...]:
    """Parse the declarations of a text; ConfigFileError if it is invalid."""
    document = parse(text, source, _File)
    found: dict[str, Declaration] = {}
    try:
        for index, entry in enumerate(document.value.node_groups):
            path = f"nodeGroups[{index}]"
            one = _entry(entry, path)
            check_unique(found, one.group, f"{path}.{'id' if entry.get('id') else 'name'}")
            found[one.group] = one
    except FieldProblem as problem:
        raise document.error(problem) from None
    return tuple(found.values())


def _entry(entry: dict[str, object], path: str) -> Declaration:
    try:
        name = msgspec.convert(entry, _Named).name
    except msgspec.ValidationError:
        raise FieldProblem(f"{path}.name", "a group needs a name") from None
    rest = {key: value for key, value in entry.items() if key != "name"}
    made = declare(name, rest, path)
    for problem in made.problems:
        raise problem
    return made


NODE_GROUPS = untyped_kind("NodeGroup")


class FileDeclarations:
    """The declarations of a file."""

    def __init__(self, declarations: Sequence[Declaration]) -> None:
        self._by_group = {one.group: one for one in declarations}

    def by_group(self) -> Mapping[str, Declaration]:
        """The declarations by group."""
        return self._by_group

    def problems(self) -> Sequence[GroupProblem]:
        """Return no problems: an invalid file is rejected when it is read."""
        return ()

    async def refresh(self) -> None:
        """Do nothing: a file is read once."""


class ObjectDeclarations:
    """The declarations of a file and of the cluster's NodeGroups."""

    def __init__(self, informer: Informer[Untyped], file: Sequence[Declaration] = ()) -> None:
        self._following = SyncedInformers([informer])
        self._file = {one.group: one for one in file}
        self._objects: dict[str, Declaration] = {}
        self._merged: dict[str, Declaration] | None = None
        self._problems: list[GroupProblem] = []
        informer.on_change(self._changed)

    def by_group(self) -> Mapping[str, Declaration]:
        """The first declaration of each group."""
        if self._merged is None:
            self._merged = self._merge()
        return self._merged

    def problems(self) -> Sequence[GroupProblem]:
        """Declarations of groups that are already declared."""
        self.by_group()
        return self._problems

    async def refresh(self) -> None:
        """Wait for the first list; ProviderUnavailableError if it fails."""
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
                text = f"already declared by {_author(first)}; this declaration is ignored"
                self._problems.append(GroupProblem(one.group, text, one.about))
        return merged


def _declared(item: Untyped) -> Declaration:
    spec = item.get("spec")
    return declare(name_of(item), spec if isinstance(spec, dict) else {}, "", reference_to(item))


def _author(one: Declaration) -> str:
    return "a file" if one.about is None else f"NodeGroup {one.about.name}"


log = logging.getLogger(__name__)
_MOST = 20
"""The maximum number of problems in a status."""


class NodeGroupStatuses:
    """Writes the status of NodeGroups."""

    def __init__(self, client: Client, informer: Informer[Untyped]) -> None:
        self._client = client
        self._informer = informer

    async def write(self, problems: Sequence[GroupProblem]) -> None:
        """Update the status of every NodeGroup."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for one in problems:
            if one.about is not None:
                found[one.about.uid].append(one.text)
        for item in list(self._informer.objects.values()):
            await self._write(item, found[uid_of(item)][:_MOST])

    async def _write(self, item: Untyped, problems: list[str]) -> None:
        current = item.get("status")
        known: Mapping[str, object] = current if isinstance(current, dict) else {}
        wanted = self._status(item, known, problems)
        if wanted == {name: known.get(name) for name in wanted}:
            return
        change = merge({"metadata": {"uid": uid_of(item)}, "status": wanted})
        try:
            await self._client.patch(
                self._informer.resource, name_of(item), change=change, subresource="status"
            )
        except ClientError as error:
            log.warning("status of NodeGroup %s: %s", name_of(item), error)

    def _status(
        self, item: Untyped, known: Mapping[str, object], problems: list[str]
    ) -> dict[str, object]:
        meta = item.get("metadata")
        generation = meta.get("generation", 0) if isinstance(meta, dict) else 0
        status = "False" if problems else "True"
        condition = {
            "type": "Accepted",
            "status": status,
            "reason": "HasProblems" if problems else "AsDeclared",
            "message": problems[0] if problems else "",
            "lastTransitionTime": _since(known, status) or timestamp(self._client.clock.now()),
        }
        return {
            "observedGeneration": generation,
            "problems": problems,
            "conditions": [condition],
        }


def _since(known: Mapping[str, object], status: str) -> str:
    """Return since when the condition has this status; empty if it has not."""
    conditions = known.get("conditions")
    for one in conditions if isinstance(conditions, list) else []:
        if isinstance(one, dict) and one.get("status") == status:
            return str(one.get("lastTransitionTime", ""))
    return ""
