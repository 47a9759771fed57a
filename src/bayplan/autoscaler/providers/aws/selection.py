"""The groups that the flags select.

`--nodes=MIN:MAX:NAME` names a group with its sizes; others are discovered by all tags of one
`--node-group-auto-discovery=asg:tag=a,b=c`, with their values where given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bayplan.autoscaler.providers.options import ProviderOptionError

_NODES, _DISCOVERY = "--nodes", "--node-group-auto-discovery"


@dataclass(frozen=True, slots=True)
class NamedGroup:
    """A group of --nodes, with its sizes."""

    name: str
    min_size: int
    max_size: int


@dataclass(frozen=True, slots=True)
class GroupSelection:
    """The groups that the flags select."""

    named: Mapping[str, NamedGroup]
    tagged: tuple[Mapping[str, str], ...]
    """By flag, tags and their values; an empty value matches any."""


def read_specs(nodes: Sequence[str], discovery: Sequence[str]) -> GroupSelection:
    """Parse the flags; ProviderOptionError if they are invalid."""
    named = {one.name: one for one in map(_named, nodes)}
    if len(named) < len(nodes):
        raise ProviderOptionError(f"{_NODES}: a group is listed twice")
    if not named and not discovery:
        raise ProviderOptionError(f"--cloud-provider aws: set {_NODES} or {_DISCOVERY}")
    return GroupSelection(named, tuple(map(_tags, discovery)))


def _named(text: str) -> NamedGroup:
    least, _, rest = text.partition(":")
    most, _, name = rest.partition(":")
    if not (_is_size(least) and _is_size(most) and name):
        raise ProviderOptionError(f"{_NODES} {text[:80]!r}: must be MIN:MAX:NAME")
    if int(least) > int(most):
        raise ProviderOptionError(f"{_NODES} {text[:80]!r}: {least} is more than {most}")
    return NamedGroup(name, int(least), int(most))


def _tags(text: str) -> Mapping[str, str]:
    kind, _, rest = text.partition(":")
    word, _, tags = rest.partition("=")
    if kind != "asg" or word != "tag" or not tags:
        raise ProviderOptionError(f"{_DISCOVERY} {text[:80]!r}: must be asg:tag=KEY,KEY=VALUE")
    pairs = (one.partition("=") for one in tags.split(","))
    found = {key.strip(): value.strip() for key, _, value in pairs}
    if "" in found:
        raise ProviderOptionError(f"{_DISCOVERY} {text[:80]!r}: a tag has no key")
    return found


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 6
