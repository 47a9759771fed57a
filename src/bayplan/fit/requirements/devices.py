"""What a pending pod requires of devices, by its ResourceClaims.

A claim that is missing keeps its pod from being looked at. One that is allocated can be used where
its allocation allows. One that would have to be allocated first cannot be judged here: that takes
the drivers' ResourceSlices and their expressions. The same is true of an extended resource that a
DeviceClass stands behind, on nodes that do not have it themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from bayplan.fit.state.cluster import ClusterState
from bayplan.kube.devices import ResourceClaim
from bayplan.kube.nodes import Node, NodeSelector
from bayplan.kube.pods import Pod, PodResourceClaim
from bayplan.kube.selectors import NodeSelectorMatcher, compile_node_selector

MOST_RESERVED = 256
"""How many may have a claim at once; the API server writes no more."""
_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True, eq=False)
class DeviceReach:
    """Where allocated devices can be used; compared by identity, since equal ones share one."""

    matcher: NodeSelectorMatcher

    def includes(self, node: Node) -> bool:
        """Whether they can be used on a node."""
        return self.matcher.matches(node)


@dataclass(frozen=True, slots=True)
class DeviceRequirements:
    """What a pod requires of devices."""

    reaches: tuple[DeviceReach, ...] = ()
    to_allocate: bool = False
    """Whether a claim would have to be allocated first."""
    extended: tuple[str, ...] = ()
    """Extended resources that a class stands behind, on nodes that do not have them themselves."""
    missing: str = ""
    """Why the pod is not even looked at: a claim that is not there, or is another's."""
    unserved: str = ""
    """Why no node is looked at: a class that is not there, or a claim that others have."""

    @property
    def ready(self) -> bool:
        """Whether nodes are to be evaluated."""
        return not self.missing and not self.unserved


NO_DEVICES = DeviceRequirements()


class ClaimError(ValueError):
    """Why a pod's claims keep it from being scheduled, in kube-scheduler's words."""


class DeviceRequirementsCache:
    """The device requirements of pods; equal reaches share one object."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._reaches: dict[bytes, DeviceReach] = {}

    def of(self, pod: Pod) -> DeviceRequirements:
        """Return a pod's device requirements."""
        extended = self._extended(pod)
        if not pod.spec.resource_claims:
            return DeviceRequirements(extended=extended) if extended else NO_DEVICES
        if not self._cluster.devices.are_known:
            return DeviceRequirements(to_allocate=True)
        try:
            claims = list(self.claims(pod))
        except ClaimError as problem:
            return DeviceRequirements(missing=str(problem))
        given = [one.status.allocation for one in claims]
        selectors = [one.node_selector for one in given if one and one.node_selector]
        return DeviceRequirements(
            reaches=tuple(map(self._reach, selectors)),
            to_allocate=None in given,
            extended=extended,
            unserved=_in_use(pod, claims) or self._unserved(claims),
        )

    def claims(self, pod: Pod) -> Iterator[ResourceClaim]:
        """The claims of a pod; ClaimError at the first that it cannot use."""
        for named in pod.spec.resource_claims:
            name = _claim_name(pod, named)
            if name is not None:
                yield self._usable(pod, name, made_for_it=named.resource_claim_name is None)

    def to_allocate(self, pod: Pod) -> tuple[str, ...]:
        """The keys of the claims that would have to be allocated, as far as they are known."""
        if not self._cluster.devices.are_known:
            return ()
        try:
            return tuple(one.key for one in self.claims(pod) if one.status.allocation is None)
        except ClaimError:
            return ()

    def _extended(self, pod: Pod) -> tuple[str, ...]:
        devices = self._cluster.devices
        if not devices.classes:
            return ()
        names = self._cluster.signatures.of(pod).requests
        return tuple(sorted(name for name in names if devices.serves(name)))

    def _usable(self, pod: Pod, name: str, *, made_for_it: bool) -> ResourceClaim:
        key = f"{pod.metadata.namespace}/{name}"
        claim = self._cluster.devices.claims.get(key)
        if claim is None:
            raise ClaimError(f'could not find ResourceClaim "{key}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimError(f'resourceclaim "{name}" is being deleted')
        owner = claim.metadata.controller
        if made_for_it and (owner is None or owner.uid != pod.metadata.uid):
            text = f"ResourceClaim {key} was not created for Pod {pod.key} (Pod is not owner)"
            raise ClaimError(text)
        return claim

    def _unserved(self, claims: list[ResourceClaim]) -> str:
        """The first class that a claim which is not allocated asks for, and that is not there."""
        for claim in claims:
            if claim.status.allocation is None:
                for name, device_class in _classes(claim):
                    if device_class not in self._cluster.devices.classes:
                        return f"request {name}: device class {device_class} does not exist"
        return ""

    def _reach(self, selector: NodeSelector) -> DeviceReach:
        key = _encode(selector)
        reach = self._reaches.get(key)
        if reach is None:
            if len(self._reaches) > self._cluster.limits.claims:
                self._reaches.clear()
            reach = self._reaches[key] = DeviceReach(compile_node_selector(selector))
        return reach


def _in_use(pod: Pod, claims: Iterable[ResourceClaim]) -> str:
    """Whether as many as can be have a claim already, and the pod is none of them."""
    for claim in claims:
        users = {one.uid for one in claim.status.reserved_for}
        if len(users) >= MOST_RESERVED and pod.metadata.uid not in users:
            return "resourceclaim in use"
    return ""


def _claim_name(pod: Pod, named: PodResourceClaim) -> str | None:
    """The name of the claim; None if none is needed."""
    if named.resource_claim_name is not None:
        return named.resource_claim_name
    if named.resource_claim_template_name is None:
        text = f'pod "{pod.key}", spec.resourceClaim "{named.name}"'
        raise ClaimError(f"{text}: none of the supported fields are set")
    for status in pod.status.resource_claim_statuses:
        if status.name == named.name:
            return status.resource_claim_name
    raise ClaimError(f'pod "{pod.key}": ResourceClaim not created yet')


def _classes(claim: ResourceClaim) -> Iterator[tuple[str, str]]:
    """The classes that a claim asks for, each with the name of the request."""
    for request in claim.spec.devices.requests:
        exactly = request.exactly.device_class_name if request.exactly else ""
        if exactly or request.device_class_name:
            yield request.name, exactly or request.device_class_name
        for one in request.first_available:
            yield f"{request.name}/{one.name}", one.device_class_name
