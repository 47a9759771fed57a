"""Talking to any Kubernetes API server: configuration, reads, watches, writes, leader election."""

from bayplan.client.client import Client, Tuning, connect
from bayplan.client.config import Access, load_access
from bayplan.client.election import ClusterLease, Elector
from bayplan.client.events import Recorder, Reporter
from bayplan.client.informers import Change, Informer, Informers
from bayplan.client.resources import Resource, Untyped, resource_of, untyped
from bayplan.client.verbs.patches import Patch, apply, json_patch, merge, strategic
from bayplan.client.verbs.reading import Selection, WatchFrom
from bayplan.client.verbs.subresources import deletion

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
]
