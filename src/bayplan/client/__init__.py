"""A client of any Kubernetes API server: configuration, reads, watches, writes, leader election."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayplan.client.client import Client, ClientOptions, connect
    from bayplan.client.config import Access, load_access
    from bayplan.client.election import ClusterLease, Elector
    from bayplan.client.events import ApiEventRecorder, EventReporter
    from bayplan.client.informers import Change, Informer, Informers
    from bayplan.client.resources import Resource, Untyped, resource_of, untyped, untyped_kind
    from bayplan.client.verbs.reads import Selection, WatchFrom
    from bayplan.client.verbs.writes import Patch, apply, deletion, json_patch, merge, strategic

__all__ = [
    "Access",
    "ApiEventRecorder",
    "Change",
    "Client",
    "ClientOptions",
    "ClusterLease",
    "Elector",
    "EventReporter",
    "Informer",
    "Informers",
    "Patch",
    "Resource",
    "Selection",
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
_MODULES = {
    "client": ("Client", "ClientOptions", "connect"),
    "config": ("Access", "load_access"),
    "election": ("ClusterLease", "Elector"),
    "events": ("ApiEventRecorder", "EventReporter"),
    "informers": ("Change", "Informer", "Informers"),
    "resources": ("Resource", "Untyped", "resource_of", "untyped", "untyped_kind"),
    "verbs.writes": ("Patch", "apply", "deletion", "json_patch", "merge", "strategic"),
    "verbs.reads": ("Selection", "WatchFrom"),
}
"""By module of this package, the names that it defines."""


def __getattr__(name: str) -> object:
    """Import a name on its first use, so that errors and kinds alone do not load the client."""
    for module, names in _MODULES.items():
        if name in names:
            found: object = getattr(import_module(f"{__name__}.{module}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
