"""Objects that the model does not count, and the page shows or hands on all the same."""

from __future__ import annotations

from bayplan.kube.events import Event
from bayplan.kube.meta import KubeObject
from bayplan.kube.queueing import PodGroup, Queue
from bayplan.kube.workloads import DaemonSet, Job
from bayplan.ui.page import Page

HANDED_ON = frozenset({PodGroup, Queue, DaemonSet, Job})
"""Kinds that queues and plans rest on."""


def take_extra(page: Page, obj: KubeObject) -> None:
    """Such an object is there, or has changed."""
    if isinstance(obj, Event):
        page.picture.put_event(obj)
        return
    if isinstance(obj, PodGroup):
        page.picture.put_pod_group(obj, obj.key)
    if type(obj) in HANDED_ON:
        page.extras[type(obj), obj.key] = obj
        page.stir()


def drop_extra(page: Page, kind: type[KubeObject], key: str) -> None:
    """Such an object is gone."""
    if kind is Event:
        page.picture.events.drop(key)
    elif page.extras.pop((kind, key), None) is not None:
        if kind is PodGroup:
            page.picture.put_pod_group(None, key)
        page.stir()
