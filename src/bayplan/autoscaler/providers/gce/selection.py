"""The groups that the flags select, as in Cluster Autoscaler.

`--nodes=MIN:MAX:URL` names a group with its sizes, by its URL, or by its name if only one zone or
region of the project has it. `--node-group-auto-discovery=mig:namePrefix=PREFIX,min=MIN,max=MAX`
finds all groups whose name continues that prefix; `label=KEY=VALUE` and `location=ZONE-OR-REGION`,
which are Bayplan's, narrow that down, and a label can stand instead of the prefix.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bayplan.autoscaler.providers.gce.refs import MigRef, is_name, mig_ref
from bayplan.autoscaler.providers.options import ProviderOptionError

_NODES, _DISCOVERY = "--nodes", "--node-group-auto-discovery"
_FORM = "mig:namePrefix=PREFIX,min=MIN,max=MAX"
_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}=[a-z0-9_-]{0,63}")
_KEYS = ("namePrefix", "label", "location", "min", "max")


@dataclass(frozen=True, slots=True)
class NamedMig:
    """A group of --nodes, with its sizes."""

    name: str
    ref: MigRef | None
    """None if it is named without its zone or region."""
    min_size: int
    max_size: int


@dataclass(frozen=True, slots=True)
class MigDiscovery:
    """The groups of one --node-group-auto-discovery, with their sizes."""

    prefix: str
    min_size: int
    max_size: int
    labels: Mapping[str, str] = field(default_factory=dict)
    location: str = ""

    @property
    def filter(self) -> str:
        """The filter of Compute Engine's list; it has no filter for labels and locations."""
        return f'name eq "{self.prefix}.+"' if self.prefix else ""

    def matches(self, ref: MigRef) -> bool:
        """Whether a group has the prefix and the location."""
        has_prefix = ref.name.startswith(self.prefix) and ref.name != self.prefix
        return has_prefix and self.location in ("", ref.location, ref.region)


@dataclass(frozen=True, slots=True)
class MigSelection:
    """The groups that the flags select."""

    named: tuple[NamedMig, ...]
    discovered: tuple[MigDiscovery, ...]

    @property
    def needs_project(self) -> bool:
        """Whether groups must be searched in a project."""
        return bool(self.discovered) or any(one.ref is None for one in self.named)


def read_selection(nodes: Sequence[str], discovery: Sequence[str]) -> MigSelection:
    """Parse the flags; ProviderOptionError if they are invalid."""
    named = tuple(map(_named, nodes))
    if len({one.ref or one.name for one in named}) < len(named):
        raise ProviderOptionError(f"{_NODES}: a group is listed twice")
    if not named and not discovery:
        raise ProviderOptionError(f"--cloud-provider gce: set {_NODES} or {_DISCOVERY}")
    return MigSelection(named, tuple(map(_discovery, discovery)))


def _named(text: str) -> NamedMig:
    place = f"{_NODES} {text[:200]!r}"
    least, _, rest = text.partition(":")
    most, _, name = rest.partition(":")
    ref = mig_ref(name)
    if not (is_name(name) or ref is not None):
        raise ProviderOptionError(
            f"{place}: must be MIN:MAX:URL, with the URL or the name of a managed instance group"
        )
    return NamedMig(name if ref is None else ref.name, ref, *_sizes(least, most, place))


def _discovery(text: str) -> MigDiscovery:
    place = f"{_DISCOVERY} {text[:200]!r}"
    kind, _, rest = text.partition(":")
    if kind != "mig":
        raise ProviderOptionError(f"{place}: must be {_FORM}")
    found: dict[str, str] = {}
    labels: dict[str, str] = {}
    for key, value in (_pair(one, place) for one in rest.split(",")):
        if key == "label":
            labels |= [_label(value, place)]
        elif key in found:
            raise ProviderOptionError(f"{place}: {key} is set twice")
        else:
            found[key] = value
    return _checked(found, labels, place)


def _checked(found: Mapping[str, str], labels: Mapping[str, str], place: str) -> MigDiscovery:
    prefix, location = found.get("namePrefix", ""), found.get("location", "")
    if not (prefix or labels):
        raise ProviderOptionError(f"{place}: needs a namePrefix or a label")
    for text in filter(None, (prefix.rstrip("-"), location)):
        if not is_name(text):
            raise ProviderOptionError(f"{place}: {text!r} must be lower-case letters, digits and -")
    least, most = _sizes(found.get("min", "0"), found.get("max", ""), place)
    if not most:
        raise ProviderOptionError(f"{place}: max must be at least 1")
    return MigDiscovery(prefix, least, most, labels, location)


def _pair(text: str, place: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if key not in _KEYS:
        raise ProviderOptionError(f"{place}: {key!r} must be one of {', '.join(_KEYS)}")
    if not separator or not value:
        raise ProviderOptionError(f"{place}: {key} has no value")
    return key, value


def _label(text: str, place: str) -> tuple[str, str]:
    if _LABEL.fullmatch(text) is None:
        raise ProviderOptionError(f"{place}: {text!r} is not a label KEY=VALUE")
    key, _, value = text.partition("=")
    return key, value


def _sizes(least: str, most: str, place: str) -> tuple[int, int]:
    if not (_is_size(least) and _is_size(most)):
        raise ProviderOptionError(f"{place}: minimum and maximum size must be whole numbers")
    if int(least) > int(most):
        raise ProviderOptionError(f"{place}: {least} is more than {most}")
    return int(least), int(most)


def _is_size(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 6
