"""Talking to any Kubernetes API server: configuration, reads, watches, writes, leader election."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayplan.client.client import Client, Tuning, connect
    from bayplan.client.config import Access, load_access
    from bayplan.client.election import ClusterLease, Elector
    from bayplan.client.events import Recorder, Reporter
    from bayplan.client.informers import Change, Informer, Informers
    from bayplan.client.resources import Resource, Untyped, resource_of, untyped, untyped_kind
    from bayplan.client.verbs.reads import Selection, WatchFrom
    from bayplan.client.verbs.writes import Patch, apply, deletion, json_patch, merge, strategic

__all__ = [
    "Access",
    "Change",
    "Client",
    "ClusterLease",
    "Elector",
    "Informer",
    "Informers",
    "Patch",
    "Recorder",
    "Reporter",
    "Resource",
    "Selection",
    "Tuning",
    "Untyped",
    "WatchFrom",
    "apply",
    "connect",
    "deletion",
    "json_patch",
    "load_access",
    "merge",
    "resource_of",
    "strategic",
    "untyped",
    "untyped_kind",
]
_HOMES = {
    "client": ("Client", "Tuning", "connect"),
    "config": ("Access", "load_access"),
    "election": ("ClusterLease", "Elector"),
    "events": ("Recorder", "Reporter"),
    "informers": ("Change", "Informer", "Informers"),
    "resources": ("Resource", "Untyped", "resource_of", "untyped", "untyped_kind"),
    "verbs.writes": ("Patch", "apply", "deletion", "json_patch", "merge", "strategic"),
    "verbs.reads": ("Selection", "WatchFrom"),
}
"""Where each name is at home, among the modules of this package."""


def __getattr__(name: str) -> object:
    """A name on its first use: who needs only our errors or kinds does not pay for a client."""
    for home, names in _HOMES.items():
        if name in names:
            found: object = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
