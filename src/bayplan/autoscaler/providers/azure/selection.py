"""The scale sets that the flags select.

`--nodes=MIN:MAX:NAME` names a scale set with its sizes.

`--node-group-auto-discovery=label:KEY=VALUE,…,min=1,max=10` discovers those that have all these
tags. Their sizes are the tags `min` and `max`, or else those of the flag. As in Cluster Autoscaler
a scale set must match every such flag; of several sizes the narrowest count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bayplan.autoscaler.providers.options import ProviderOptionError

_NODES, _DISCOVERY = "--nodes", "--node-group-auto-discovery"
MIN, MAX = "min", "max"


@dataclass(frozen=True, slots=True)
class ScaleSetSizes:
    """The minimum and maximum size of a scale set."""

    min_size: int
    max_size: int


@dataclass(frozen=True, slots=True)
class ScaleSetSelection:
    """The selected scale sets."""

    named: Mapping[str, tuple[str, ScaleSetSizes]]
    """By name in lower case: the name as it was written, and the sizes."""
    tags: Mapping[str, str]
    """Tags that a discovered scale set must have; empty if none is discovered."""
    impossible: bool = False
    """Two flags require different values of one tag."""
    min_size: int | None = None
    """The minimum size of discovered scale sets without a tag."""
    max_size: int | None = None

    def sizes_of(self, name: str, tags: Mapping[str, str]) -> ScaleSetSizes | str | None:
        """Return the sizes of a scale set, why it has none, or None if it is not selected."""
        if name.lower() in self.named:
            return self.named[name.lower()][1]
        return self._discovered(tags) if self._matches(tags) else None

    def _matches(self, tags: Mapping[str, str]) -> bool:
        wanted = self.tags.items()
        return bool(wanted) and not self.impossible and wanted <= tags.items()

    def _discovered(self, tags: Mapping[str, str]) -> ScaleSetSizes | str:
        least, most = tags.get(MIN, self.min_size), tags.get(MAX, self.max_size)
        for value, name in ((least, MIN), (most, MAX)):
            if value is None:
                return f"tag {name}: is not set, and neither is it in {_DISCOVERY}"
            if not _is_size(str(value).strip()):
                return f"tag {name}: {str(value)[:40]!r} must be a whole number"
        sizes = ScaleSetSizes(int(least or 0), int(most or 0))
        if sizes.min_size > sizes.max_size:
            return f"tags {MIN} and {MAX}: {sizes.min_size} is more than {sizes.max_size}"
        return sizes


def read_selection(nodes: Sequence[str], discovery: Sequence[str]) -> ScaleSetSelection:
    """Parse the flags; ProviderOptionError if they are invalid."""
    named: dict[str, tuple[str, ScaleSetSizes]] = {}
    for name, sizes in map(_named, nodes):
        if name.lower() in named:
            raise ProviderOptionError(f"{_NODES}: {name[:80]!r} is listed twice")
        named[name.lower()] = (name, sizes)
    if not named and not discovery:
        raise ProviderOptionError(f"--cloud-provider azure: set {_NODES} or {_DISCOVERY}")
    return _discovery(named, [_pairs(one) for one in discovery])


def _discovery(
    named: Mapping[str, tuple[str, ScaleSetSizes]], flags: Sequence[Mapping[str, str]]
) -> ScaleSetSelection:
    pairs = [(k, v) for flag in flags for k, v in flag.items() if k not in {MIN, MAX}]
    tags = dict(pairs)
    return ScaleSetSelection(
        named,
        tags,
        impossible=len(set(pairs)) > len(tags),
        min_size=max((int(one[MIN]) for one in flags if MIN in one), default=None),
        max_size=min((int(one[MAX]) for one in flags if MAX in one), default=None),
    )


def _named(text: str) -> tuple[str, ScaleSetSizes]:
    least, _, rest = text.partition(":")
    most, _, name = rest.partition(":")
    if not (_is_size(least) and _is_size(most) and name):
        raise ProviderOptionError(f"{_NODES} {text[:80]!r}: must be MIN:MAX:NAME")
    if int(least) > int(most):
        raise ProviderOptionError(f"{_NODES} {text[:80]!r}: {least} is more than {most}")
    return name, ScaleSetSizes(int(least), int(most))


def _pairs(text: str) -> dict[str, str]:
    where = f"{_DISCOVERY} {text[:80]!r}"
    kind, _, rest = text.partition(":")
    split = [one.partition("=") for one in rest.split(",")]
    pairs = {key.strip(): value.strip() for key, _, value in split}
    if kind != "label" or not all(pairs) or not all(pairs.values()):
        raise ProviderOptionError(f"{where}: must be label:KEY=VALUE,KEY=VALUE")
    if not pairs.keys() - {MIN, MAX}:
        raise ProviderOptionError(f"{where}: must have a tag other than {MIN} and {MAX}")
    for name in (MIN, MAX):
        if name in pairs and not _is_size(pairs[name]):
            raise ProviderOptionError(f"{where}: {name} must be a whole number")
    if MIN in pairs and MAX in pairs and int(pairs[MIN]) > int(pairs[MAX]):
        raise ProviderOptionError(f"{where}: {pairs[MIN]} is more than {pairs[MAX]}")
    return pairs


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 6
