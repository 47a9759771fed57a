"""Informers: local caches of objects that follow the server, and notify of every change."""

from bayplan.client.informers.informer import Informer, Informers, Subscription
from bayplan.client.informers.reflector import Change

__all__ = ["Change", "Informer", "Informers", "Subscription"]
