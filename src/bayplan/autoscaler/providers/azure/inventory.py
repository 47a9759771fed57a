"""Scale sets and their instances, read once a minute and after every change.

All scale sets of the resource group are read in one list, then the instances of each selected one;
those of a scale set that has not changed, and in which nothing happens, only every five minutes.

A scale set that Azure no longer lists is removed. One that cannot be read is left out, and
reported; if Azure does not answer at all, the last state is kept. If only the instances of a scale
set cannot be read, it does not answer, and others do.

The target size is the capacity, less two kinds of instances that will not come: those that we have
deleted and Azure does not yet show as deleted, and those that were given up. The capacity itself is
never lowered, since Azure would choose which instances to delete.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

import msgspec

from bayplan.autoscaler.providers.azure.api_types import (
    InstanceView,
    ScaleSet,
    ScaleSetVm,
    checked,
)
from bayplan.autoscaler.providers.azure.members import (
    PLACEHOLDER,
    SCHEME,
    VmRef,
    error_in,
    instances_of,
    is_deleting,
    is_settled,
)
from bayplan.autoscaler.providers.azure.sdk import AzureSdk
from bayplan.autoscaler.providers.azure.selection import ScaleSetSelection, ScaleSetSizes
from bayplan.autoscaler.providers.azure.templates import (
    ScaleSetTags,
    read_scale_set_tags,
    zones_of,
)
from bayplan.base.clock import Clock
from bayplan.nodegroups import (
    CloudNodeGroup,
    GroupProblem,
    Instance,
    InstanceError,
    InstanceState,
    NodeGroupError,
    NodeGroupNotFoundError,
    ProviderUnavailableError,
)

FRESH = 60.0
"""Seconds for which the inventory is cached."""
VMS_FRESH = 300.0
"""Seconds for which the instances of a scale set are cached in which nothing happens."""
DELETION_SHOWN = 300.0
"""Seconds after which Azure must show a deletion; later it counts as not done."""


@dataclass(frozen=True, slots=True)
class ScaleSetState:
    """A scale set at one moment."""

    group: CloudNodeGroup
    answer: ScaleSet
    tags: ScaleSetTags
    vms: tuple[ScaleSetVm, ...] | NodeGroupError
    """Its instances, or why they cannot be read."""
    deleted: frozenset[str] = frozenset()
    """IDs of instances that we have deleted, and that Azure does not yet show as deleted."""
    given_up: int = 0
    """Missing instances that are not waited for."""
    error: InstanceError | None = None
    """Why instances are missing."""

    def listed(self) -> tuple[ScaleSetVm, ...]:
        """Return the instances; NodeGroupError if they cannot be read."""
        if isinstance(self.vms, NodeGroupError):
            raise self.vms
        return self.vms

    def active(self) -> list[ScaleSetVm]:
        """Return the instances that are not being deleted."""
        return [one for one in self.listed() if not self.is_going(one)]

    def is_going(self, vm: ScaleSetVm) -> bool:
        """Whether an instance is being deleted."""
        return is_deleting(vm) or vm.instance_id in self.deleted

    def target(self) -> int:
        """Return the target size."""
        unshown = sum(one.instance_id in self.deleted for one in self.listed())
        wanted = self.answer.sku.capacity - unshown - self.given_up
        return max(len(self.active()), wanted)

    def missing(self) -> int:
        """Return how many instances are still to come."""
        return self.target() - len(self.active())


class ScaleSetInventory:
    """The scale sets by name, and their instances."""

    def __init__(
        self, sdk: AzureSdk, selection: ScaleSetSelection, clock: Clock, prefix: str
    ) -> None:
        self._sdk = sdk
        self._selection = selection
        self._clock = clock
        self._prefix = prefix
        """Resource ID of the scale sets, without their name."""
        self._read_at = float("-inf")
        self._vms: dict[str, VmCache] = {}
        self._deleted: dict[str, dict[str, float]] = {}
        """By scale set, the instances that we have deleted, and when."""
        self._given_up: dict[str, int] = {}
        self.groups: dict[str, ScaleSetState] = {}
        self.problems: list[GroupProblem] = []

    async def refresh(self) -> None:
        """Read again, if the cache has expired."""
        now = self._clock.monotonic()
        if now - self._read_at < FRESH:
            return
        problems: list[GroupProblem] = []
        selected = self._select(await self._sdk.scale_sets(), problems)
        found = await asyncio.gather(*(self._state(*one) for one in selected))
        self.groups = {one.group.id: one for one in found}
        for one in found:
            problems += [GroupProblem(one.group.id, text) for text in one.tags.problems]
        self.problems = problems
        self._forget()
        self._read_at = now

    async def read(self, name: str) -> ScaleSetState:
        """Read the current state of a scale set; NodeGroupError if that is not possible."""
        known = self.groups[name]
        answer = await self.read_scale_set(name)
        self._vms.pop(name, None)
        state = await self._with_vms(replace(known, answer=answer))
        state.listed()
        self.groups[name] = state
        return state

    async def read_scale_set(self, name: str) -> ScaleSet:
        """Read a scale set without its instances; NodeGroupNotFoundError if it does not exist."""
        answer = checked(await self._sdk.scale_set(name), ScaleSet)
        if answer.properties.provisioning_state.lower() == "deleting":
            raise NodeGroupNotFoundError(f"scale set {name!r} is being deleted")
        return answer

    def resized(self, name: str, size: int) -> None:
        """Note a capacity that we have set, and read again in the next loop."""
        self._given_up.pop(name, None)
        known = self.groups[name]
        sku = msgspec.structs.replace(known.answer.sku, capacity=size)
        answer = msgspec.structs.replace(known.answer, sku=sku)
        self.groups[name] = replace(known, answer=answer, given_up=0, error=None)
        self.invalidate(name)

    def deleted(self, name: str, instances: list[str]) -> None:
        """Note a deletion that Azure has accepted, and read again in the next loop."""
        now = self._clock.monotonic()
        self._deleted.setdefault(name, {}).update(dict.fromkeys(instances, now))
        known = self.groups[name]
        self.groups[name] = replace(known, deleted=known.deleted | set(instances))
        self.invalidate(name)

    def give_up(self, name: str, count: int) -> None:
        """Wait no longer for so many missing instances."""
        known = self.groups[name]
        given_up = known.given_up + min(count, known.missing())
        self._given_up[name] = given_up
        self.groups[name] = replace(known, given_up=given_up)

    def invalidate(self, name: str) -> None:
        """Read a scale set and its instances again in the next loop."""
        self._vms.pop(name, None)
        self._read_at = float("-inf")

    def name_of(self, ref: VmRef) -> str:
        """Return the scale set of an instance; empty if it is not one of these."""
        if not self._prefix.lower().startswith(
            f"/subscriptions/{ref.subscription}/resourcegroups/{ref.resource_group}/"
        ):
            return ""
        return next((name for name in self.groups if name.lower() == ref.scale_set), "")

    def instances(self, state: ScaleSetState) -> list[Instance]:
        """Return the instances, then placeholders for the missing ones."""
        current = instances_of(state.listed(), state.deleted)
        first, name = len(current), state.answer.name
        return current + [
            Instance(
                f"{SCHEME}{self._prefix}{name}/virtualMachines/{PLACEHOLDER}{number}",
                InstanceState.CREATING,
                state.error,
            )
            for number in range(first, first + state.missing())
        ]

    def _select(
        self, items: list[object], problems: list[GroupProblem]
    ) -> list[tuple[ScaleSet, ScaleSetSizes]]:
        """Return the selected scale sets by name, with their sizes."""
        found: dict[str, tuple[ScaleSet, ScaleSetSizes]] = {}
        reported = set()
        for item in items:
            name = str(item.get("name", "")) if isinstance(item, dict) else ""
            try:
                one = self._selected(checked(item, ScaleSet))
            except ProviderUnavailableError as problem:
                one = str(problem) if self._may_be_selected(name) else None
            if isinstance(one, str):
                problems.append(GroupProblem(name, one))
                reported.add(name.lower())
            elif one is not None:
                found[one[0].name] = one
        known = {name.lower() for name in found} | reported
        problems += [
            GroupProblem(written, "there is no scale set with this name")
            for name, (written, _) in self._selection.named.items()
            if name not in known
        ]
        return [found[name] for name in sorted(found)]

    def _selected(self, answer: ScaleSet) -> tuple[ScaleSet, ScaleSetSizes] | str | None:
        """Return a scale set with its sizes, why it is no group, or None if it is not selected."""
        sizes = self._selection.sizes_of(answer.name, answer.tags)
        if sizes is None or answer.properties.provisioning_state.lower() == "deleting":
            return None
        if answer.properties.orchestration_mode.lower() == "flexible":
            return "its orchestration mode is Flexible: only Uniform scale sets are supported"
        return sizes if isinstance(sizes, str) else (answer, sizes)

    def _may_be_selected(self, name: str) -> bool:
        """Whether a scale set that cannot be read may be one that is selected."""
        return name.lower() in self._selection.named or bool(self._selection.tags)

    async def _state(self, answer: ScaleSet, sizes: ScaleSetSizes) -> ScaleSetState:
        zones = zones_of(answer)
        group = CloudNodeGroup(
            answer.name,
            sizes.min_size,
            sizes.max_size,
            f"scale set of {answer.sku.name} in {', '.join(zones) or answer.location}",
            zones,
        )
        tags = read_scale_set_tags(answer.tags)
        return await self._with_vms(ScaleSetState(group, answer, tags, ()))

    async def _with_vms(self, state: ScaleSetState) -> ScaleSetState:
        """Return the state with its instances, read again if they may have changed."""
        name = state.answer.name
        try:
            vms = await self._members(state.answer)
        except NodeGroupError as problem:
            return replace(state, vms=problem)
        deleted = self._still_unshown(name, vms)
        found = replace(state, vms=vms, deleted=deleted, given_up=0, error=None)
        missing = found.missing()
        given_up = min(self._given_up.pop(name, 0), missing)
        if given_up:
            self._given_up[name] = given_up
        has_failed = state.answer.properties.provisioning_state.lower() == "failed"
        error = await self._error(name) if missing > given_up and has_failed else None
        return replace(found, given_up=given_up, error=error)

    async def _members(self, answer: ScaleSet) -> tuple[ScaleSetVm, ...]:
        now, known = self._clock.monotonic(), self._vms.get(answer.name)
        if known is None or not known.is_fresh(answer, now):
            found = [checked(one, ScaleSetVm) for one in await self._sdk.vms(answer.name)]
            known = VmCache(tuple(found), now, _version(answer))
            self._vms[answer.name] = known
        return known.vms

    def _still_unshown(self, name: str, vms: tuple[ScaleSetVm, ...]) -> frozenset[str]:
        """Return the instances that we have deleted and Azure does not yet show as deleted."""
        since = self._clock.monotonic() - DELETION_SHOWN
        active = {one.instance_id for one in vms if not is_deleting(one)}
        marks = self._deleted.pop(name, {})
        left = {one: at for one, at in marks.items() if one in active and at > since}
        if left:
            self._deleted[name] = left
        return frozenset(left)

    async def _error(self, name: str) -> InstanceError | None:
        """Return why a scale set lacks instances; None if that cannot be read."""
        try:
            view = checked(await self._sdk.scale_set_view(name), InstanceView)
        except NodeGroupError:
            return None
        return error_in(view.statuses)

    def _forget(self) -> None:
        """Forget what was noted about scale sets that are gone."""
        for noted in (self._vms, self._deleted, self._given_up):
            for name in noted.keys() - self.groups.keys():
                del noted[name]


@dataclass(frozen=True, slots=True)
class VmCache:
    """The instances of a scale set, and when they were read."""

    vms: tuple[ScaleSetVm, ...]
    read_at: float
    version: tuple[object, ...] = field(default=())
    """What was known of the scale set then."""

    def is_fresh(self, answer: ScaleSet, now: float) -> bool:
        """Whether nothing happens in the scale set since its instances were read."""
        quiet = all(map(is_settled, self.vms)) and len(self.vms) == answer.sku.capacity
        return quiet and self.version == _version(answer) and now - self.read_at < VMS_FRESH


def _version(answer: ScaleSet) -> tuple[object, ...]:
    return (answer.etag, answer.sku.capacity, answer.properties.provisioning_state)
