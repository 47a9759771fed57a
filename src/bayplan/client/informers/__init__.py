"""Local copies of objects that follow the server, and word of every change."""

from bayplan.client.informers.changes import Change
from bayplan.client.informers.group import Informers
from bayplan.client.informers.informer import Informer
from bayplan.client.informers.subscriptions import Subscription

__all__ = ["Change", "Informer", "Informers", "Subscription"]
