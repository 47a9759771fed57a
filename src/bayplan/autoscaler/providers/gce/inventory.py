"""Managed instance groups and their instances, read once a minute and after every change.

A group that Compute Engine no longer lists is removed. A group that does not answer keeps its last
instances, and its error: it is not scaled until it answers. If groups cannot be listed at all, the
last state of all is kept.

A group with a name in several zones is not guessed at: it is left out, and reported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bayplan.autoscaler.providers.gce.api_types import (
    AggregatedPage,
    ManagedGroup,
    ManagedInstance,
    MembersPage,
    converted,
)
from bayplan.autoscaler.providers.gce.launch import MigLaunch, MigLaunches
from bayplan.autoscaler.providers.gce.members import instances_of, refs_of
from bayplan.autoscaler.providers.gce.refs import InstanceRef, MigRef, last_part, mig_ref
from bayplan.autoscaler.providers.gce.sdk import GceSdk
from bayplan.autoscaler.providers.gce.selection import MigDiscovery, MigSelection, NamedMig
from bayplan.base.clock import Clock
from bayplan.nodegroups import (
    CloudNodeGroup,
    GroupProblem,
    Instance,
    NodeGroupError,
    NodeGroupNotFoundError,
    ProviderUnavailableError,
)

FRESH = 60.0
"""Seconds for which the inventory is cached."""
_NO_GROUP = "there is no managed instance group with this name"
_RIVAL = "Compute Engine's own autoscaler also scales this group: remove one of both"
_UNREACHABLE = "UNREACHABLE"


@dataclass(frozen=True, slots=True)
class SelectedMig:
    """A group that the flags select, with its sizes and Compute Engine's answer."""

    ref: MigRef
    min_size: int
    max_size: int
    answer: ManagedGroup | NodeGroupError


@dataclass(frozen=True, slots=True)
class Mig:
    """A managed instance group at one moment."""

    ref: MigRef
    group: CloudNodeGroup
    launch: MigLaunch | NodeGroupError
    size: int = 0
    members: tuple[ManagedInstance, ...] = ()
    instances: tuple[Instance, ...] = ()
    has_autoscaler: bool = False
    """Whether Compute Engine scales it by itself."""
    error: NodeGroupError | None = None
    """Why its size and instances could not be read."""


@dataclass(slots=True)
class _Found:
    """The groups of one refresh, and their problems."""

    selected: dict[MigRef, SelectedMig] = field(default_factory=dict)
    problems: list[GroupProblem] = field(default_factory=list)

    def add(self, one: SelectedMig) -> None:
        """Add a group; one that was added first, by name, keeps its sizes."""
        self.selected.setdefault(one.ref, one)


class MigInventory:
    """The managed instance groups by id, and the group of each instance."""

    def __init__(self, sdk: GceSdk, wanted: MigSelection, clock: Clock) -> None:
        self._sdk = sdk
        self._wanted = wanted
        self._clock = clock
        self._launches = MigLaunches(sdk, clock)
        self._read_at = float("-inf")
        self.groups: dict[str, Mig] = {}
        self.group_of: dict[InstanceRef, str] = {}
        self.problems: list[GroupProblem] = []

    async def refresh(self) -> None:
        """Read again, if the cache has expired."""
        now = self._clock.monotonic()
        if now - self._read_at < FRESH:
            return
        found = await self._select()
        migs = await asyncio.gather(*map(self._mig, found.selected.values()))
        gone = [ref for ref, mig in zip(found.selected, migs, strict=True) if mig is None]
        problems = [*found.problems, *(GroupProblem(ref.id, _NO_GROUP) for ref in gone)]
        self._store([one for one in migs if one is not None], problems)
        self._read_at = now

    async def read(self, ref: MigRef) -> tuple[int, tuple[ManagedInstance, ...]]:
        """Read a group's current size and instances; NodeGroupNotFoundError if it is gone."""
        members = await self._members(ref)
        return (await self._sdk.read_group(ref, ManagedGroup)).target_size, members

    def resized(self, group: str, size: int) -> None:
        """Note a size that we have set."""
        known = self.groups.get(group)
        if known is not None:
            self.groups[group] = replace(known, size=size)

    def invalidate(self) -> None:
        """Read again in the next loop."""
        self._read_at = float("-inf")

    def _store(self, migs: Sequence[Mig], problems: list[GroupProblem]) -> None:
        self.groups = {one.group.id: one for one in sorted(migs, key=lambda mig: mig.ref)}
        self.group_of = {ref: one.group.id for one in migs for ref in refs_of(one.members)}
        for one in self.groups.values():
            launch = one.launch
            texts = launch.template.env.problems if isinstance(launch, MigLaunch) else ()
            rival = (_RIVAL,) if one.has_autoscaler else ()
            problems += [GroupProblem(one.group.id, text) for text in (*rival, *texts)]
        self.problems = problems

    async def _select(self) -> _Found:
        found = _Found()
        exact = [(one, one.ref) for one in self._wanted.named if one.ref is not None]
        answers = await asyncio.gather(*(self._group(ref) for _, ref in exact))
        for (one, ref), answer in zip(exact, answers, strict=True):
            found.add(SelectedMig(ref, one.min_size, one.max_size, answer))
        for one in self._wanted.named:
            if one.ref is None:
                await self._by_name(one, found)
        for rule in self._wanted.discovered:
            await self._discover(rule, found)
        return found

    async def _group(self, ref: MigRef) -> ManagedGroup | NodeGroupError:
        try:
            return await self._sdk.read_group(ref, ManagedGroup)
        except NodeGroupError as error:
            return error

    async def _by_name(self, named: NamedMig, found: _Found) -> None:
        listed = await self._list(f'name eq "{named.name}"', found.problems)
        refs = [ref for ref in listed if ref.name == named.name]
        if len(refs) == 1:
            answer = listed[refs[0]]
            found.add(SelectedMig(refs[0], named.min_size, named.max_size, answer))
            return
        places = ", ".join(sorted(ref.location for ref in refs))
        text = f"there are several, in {places}: name it by its URL" if refs else _NO_GROUP
        found.problems.append(GroupProblem(named.name, text))

    async def _discover(self, rule: MigDiscovery, found: _Found) -> None:
        listed = await self._list(rule.filter, found.problems)
        for ref, answer in listed.items():
            if rule.matches(ref) and await self._has_labels(ref, answer, rule.labels):
                found.add(SelectedMig(ref, rule.min_size, rule.max_size, answer))

    async def _has_labels(
        self, ref: MigRef, answer: ManagedGroup, labels: Mapping[str, str]
    ) -> bool:
        """Whether a group's instances get all these labels."""
        if not labels:
            return True
        try:
            templates = await self._launches.templates(ref, answer)
        except ProviderUnavailableError:
            # Then it might be one of ours: it must not vanish for that.
            return ref.id in self.groups
        except NodeGroupError:
            return False
        has = {**templates[0].labels, **answer.all_instances_config.properties.labels}
        return labels.items() <= has.items()

    async def _list(self, which: str, problems: list[GroupProblem]) -> dict[MigRef, ManagedGroup]:
        """List groups of the project in all zones and regions; invalid ones are reported."""
        params = {"filter": which} if which else {}
        pages = await self._sdk.read_all(
            "InstanceGroupManagersClient",
            "aggregated_list",
            AggregatedPage,
            project=self._sdk.project,
            **params,
        )
        found: dict[MigRef, ManagedGroup] = {}
        for page in pages:
            for place, scoped in page.items.items():
                if scoped.warning.code == _UNREACHABLE:
                    raise ProviderUnavailableError(f"Compute Engine cannot reach {place}")
                for item in scoped.instance_group_managers:
                    found |= self._read_item(place, item, problems)
        return found

    def _read_item(
        self, place: str, item: Mapping[str, object], problems: list[GroupProblem]
    ) -> dict[MigRef, ManagedGroup]:
        name = str(item.get("name", ""))
        ref = mig_ref(f"projects/{self._sdk.project}/{place}/instanceGroupManagers/{name}")
        if ref is None:
            problems.append(GroupProblem(name, f"{place}: this is not a name of a group"))
            return {}
        try:
            return {ref: converted(item, ManagedGroup)}
        except NodeGroupError as problem:
            problems.append(GroupProblem(ref.id, str(problem)))
            return {}

    async def _mig(self, one: SelectedMig) -> Mig | None:
        """Read a group's instances and template; None if the group does not exist."""
        answer = one.answer
        if isinstance(answer, NodeGroupError):
            return self._unanswered(one, answer)
        zones = _zones(one.ref, answer)
        text = f"managed instance group in {', '.join(zones) or 'no zone'}"
        group = CloudNodeGroup(one.ref.id, one.min_size, one.max_size, text, zones)
        launch = await self._launch(one.ref, answer, zones)
        try:
            members = await self._members(one.ref)
        except NodeGroupError as error:
            return self._unanswered(one, error)
        return Mig(
            one.ref,
            group,
            launch,
            answer.target_size,
            members,
            instances_of(members),
            bool(answer.status.autoscaler),
        )

    def _unanswered(self, one: SelectedMig, error: NodeGroupError) -> Mig | None:
        """Return the last state of a group with its error; None if it does not exist."""
        if isinstance(error, NodeGroupNotFoundError):
            return None
        group = CloudNodeGroup(one.ref.id, one.min_size, one.max_size, "managed instance group")
        known = self.groups.get(one.ref.id)
        return replace(known or Mig(one.ref, group, error), error=error)

    async def _launch(
        self, ref: MigRef, answer: ManagedGroup, zones: Sequence[str]
    ) -> MigLaunch | NodeGroupError:
        try:
            return await self._launches.find(ref, answer, zones)
        except NodeGroupError as error:
            return error

    async def _members(self, ref: MigRef) -> tuple[ManagedInstance, ...]:
        pages = await self._sdk.read_members(ref, MembersPage)
        return tuple(one for page in pages for one in page.managed_instances)


def _zones(ref: MigRef, answer: ManagedGroup) -> tuple[str, ...]:
    if ref.scope == "zones":
        return (ref.location,)
    listed: Iterable[str] = (last_part(one.zone) for one in answer.distribution_policy.zones)
    return tuple(dict.fromkeys(filter(None, listed)))
