"""Which groups: `--nodes=MIN:MAX:NAME`, and `--node-group-auto-discovery=asg:tag=a,b=c`.

A group that is named has the bounds that are said there. Of the others, those are taken that have
all the tags of one flag, with their values where they are said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bayplan.autoscaler.providers.options import ProviderOptionError

_NODES, _DISCOVERY = "--nodes", "--node-group-auto-discovery"


@dataclass(frozen=True, slots=True)
class Named:
    """A group that is named, and its bounds."""

    name: str
    min_size: int
    max_size: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that the flags ask for."""

    named: Mapping[str, Named]
    tagged: tuple[Mapping[str, str], ...]
    """By flag, tags and their values; an empty value is any."""


def read_specs(nodes: Sequence[str], discovery: Sequence[str]) -> Wanted:
    """What the flags ask for; ProviderOptionError if that cannot be read."""
    named = {one.name: one for one in map(_named, nodes)}
    if len(named) < len(nodes):
        raise ProviderOptionError(f"{_NODES}: a group is there twice")
    if not named and not discovery:
        raise ProviderOptionError(f"--cloud-provider aws: give {_NODES} or {_DISCOVERY}")
    return Wanted(named, tuple(map(_tags, discovery)))


def _named(text: str) -> Named:
    least, _, rest = text.partition(":")
    most, _, name = rest.partition(":")
    if not (_is_size(least) and _is_size(most) and name):
        raise ProviderOptionError(f"{_NODES} {text[:80]!r}: must be MIN:MAX:NAME")
    if int(least) > int(most):
        raise ProviderOptionError(f"{_NODES} {text[:80]!r}: {least} is more than {most}")
    return Named(name, int(least), int(most))


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
