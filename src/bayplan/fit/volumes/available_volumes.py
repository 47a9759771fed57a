"""Volumes that no claim has taken, by where they can be reached and by size.

A class may have thousands of local volumes, a few on each node. Those of one node affinity are kept
together as a site, the smallest first. An affinity that asks for certain values of a label, as that
of every local volume does, is found by those values, so that a node looks at its own sites only.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter

import msgspec

from bayplan.fit.indexes import ChangeLog
from bayplan.kube import quantity
from bayplan.kube.nodes import Node
from bayplan.kube.selectors import (
    NodeSelectorMatcher,
    NodeTermMatcher,
    Selector,
    compile_node_selector,
    compile_selector,
)
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim

STORAGE = "storage"
NODE_NAME = ""
"""Stands for a node's name where a label could stand."""
NAME_FIELD = "metadata.name"
Hook = tuple[str, str]
"""A label (or NODE_NAME) and the value that a node must have to be in reach."""
FEW_EMPTY = 64

_BY_SIZE = itemgetter(0)
_BY_SIZE_AND_NAME = itemgetter(0, 1)
_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True)
class WantedVolume:
    """What a claim requires of an available volume, by value."""

    size: Fraction
    mode: str
    access: frozenset[str]
    selector: Selector | None

    def is_met_by(self, pv: PersistentVolume) -> bool:
        """Whether an open volume of the claim's class will do."""
        return (
            pv.status.phase == "Available"
            and could_serve(pv, self.size, self.mode)
            and (self.selector is None or self.selector.matches(pv.metadata.labels))
            and self.access <= set(pv.spec.access_modes)
        )


class Site:
    """The open volumes of one class with one node affinity."""

    __slots__ = ("_affinity", "_volumes", "hooks")

    def __init__(self, affinity: NodeSelectorMatcher | None) -> None:
        self._affinity = affinity
        self.hooks = _hooks(affinity)
        """What finds a node that may reach it; None if any node might."""
        self._volumes: list[tuple[Fraction, str, PersistentVolume]] = []

    def __len__(self) -> int:
        return len(self._volumes)

    def reaches(self, node: Node) -> bool:
        """Whether a node can reach these volumes."""
        return self._affinity is None or self._affinity.matches(node)

    def put(self, pv: PersistentVolume) -> None:
        """Add a volume."""
        insort(self._volumes, (size_of(pv), pv.name, pv), key=_BY_SIZE_AND_NAME)

    def remove(self, pv: PersistentVolume) -> None:
        """Remove a volume."""
        del self._volumes[bisect_left(self._volumes, (size_of(pv), pv.name), key=_BY_SIZE_AND_NAME)]

    def smallest(
        self, wanted: WantedVolume, taken: Collection[str]
    ) -> tuple[Fraction, str, PersistentVolume] | None:
        """The smallest volume that will do, with what orders it."""
        start = bisect_left(self._volumes, wanted.size, key=_BY_SIZE)
        for index in range(start, len(self._volumes)):
            found = self._volumes[index]
            if found[1] not in taken and wanted.is_met_by(found[2]):
                return found
        return None


class AvailableVolumes:
    """The open volumes of one class, by site."""

    def __init__(self) -> None:
        self._sites: dict[bytes, Site] = {}
        self._hooked: dict[Hook, dict[Site, None]] = {}
        self._anywhere: dict[Site, None] = {}
        self._hook_keys: Counter[str] = Counter()
        self._count = self._empty = 0
        self.changes: ChangeLog[Site] = ChangeLog()
        """Sites whose volumes changed."""
        self.epoch = 0
        """Moves when sites are forgotten."""

    def __len__(self) -> int:
        return self._count

    def put(self, pv: PersistentVolume) -> None:
        """Add an available volume."""
        key = _encode(pv.spec.node_affinity)
        site = self._sites.get(key)
        if site is None:
            site = self._sites[key] = self._new_site(pv)
        else:
            self._empty -= not site
        site.put(pv)
        self._count += 1
        self._note(site)

    def remove(self, pv: PersistentVolume) -> None:
        """Remove a volume that is no longer available."""
        site = self._sites[_encode(pv.spec.node_affinity)]
        site.remove(pv)
        self._count -= 1
        self._empty += not site
        self._note(site)
        if self._empty > max(FEW_EMPTY, len(self._sites) // 2):
            self._forget_empty()

    def sites_for(self, node: Node) -> tuple[Site, ...]:
        """The sites that a node can reach, some of them perhaps empty for now."""
        labels = node.metadata.labels
        found = dict(self._anywhere)
        for key in self._hook_keys:
            value = node.name if key == NODE_NAME else labels.get(key)
            if value is not None:
                found |= self._hooked.get((key, value), {})
        return tuple(site for site in found if site.reaches(node))

    def _new_site(self, pv: PersistentVolume) -> Site:
        required = pv.spec.node_affinity.required if pv.spec.node_affinity else None
        site = Site(compile_node_selector(required) if required else None)
        self._list(site)
        return site

    def _list(self, site: Site) -> None:
        if site.hooks is None:
            self._anywhere[site] = None
        for hook in site.hooks or ():
            self._hooked.setdefault(hook, {})[site] = None
            self._hook_keys[hook[0]] += 1

    def _forget_empty(self) -> None:
        """Drop empty sites; they are kept for a while, since volumes often come back."""
        self._sites = {key: site for key, site in self._sites.items() if site}
        self._hooked.clear()
        self._anywhere.clear()
        self._hook_keys.clear()
        self._empty = 0
        self.epoch += 1
        for site in self._sites.values():
            self._list(site)

    def _note(self, site: Site) -> None:
        self.changes.note(site)
        self.changes.trim()


def smallest_volume(
    sites: Iterable[Site], wanted: WantedVolume, taken: Collection[str]
) -> PersistentVolume | None:
    """The smallest volume of these sites that will do; of equals the first by name."""
    found = [one for site in sites if (one := site.smallest(wanted, taken)) is not None]
    return min(found, key=_BY_SIZE_AND_NAME)[2] if found else None


def wanted_volume(claim: PersistentVolumeClaim) -> WantedVolume:
    """What a claim asks of a volume."""
    selector = claim.spec.selector
    return WantedVolume(
        size=quantity.parse(claim.spec.resources.requests.get(STORAGE, 0)),
        mode=claim.spec.volume_mode,
        access=frozenset(claim.spec.access_modes),
        selector=None if selector is None else compile_selector(selector),
    )


def could_serve(pv: PersistentVolume, size: Fraction, mode: str) -> bool:
    """Whether a volume is large enough, of the right mode and not going away."""
    return (
        size_of(pv) >= size
        and pv.spec.volume_mode == mode
        and pv.metadata.deletion_timestamp is None
    )


def size_of(pv: PersistentVolume) -> Fraction:
    """How much a volume holds."""
    return quantity.parse(pv.spec.capacity.get(STORAGE, 0))


def _hooks(affinity: NodeSelectorMatcher | None) -> tuple[Hook, ...] | None:
    if affinity is None:
        return None
    hooks: list[Hook] = []
    for term in affinity.terms:
        of_term = _term_hooks(term)
        if of_term is None:
            return None
        hooks += of_term
    return tuple(dict.fromkeys(hooks))


def _term_hooks(term: NodeTermMatcher) -> list[Hook] | None:
    """The values that a term insists on; None if it has none, but could match."""
    if term.error is not None or not (term.expressions or term.fields):
        return []
    for wanted in term.fields:
        if wanted.operator == "In" and wanted.key == NAME_FIELD:
            return [(NODE_NAME, wanted.values[0])]
    for wanted in term.expressions:
        if wanted.operator == "In":
            return [(wanted.key, value) for value in wanted.values]
    return None
