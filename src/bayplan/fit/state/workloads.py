"""Services and controllers, as far as default spreading asks: which selector is behind a pod.

Kubernetes spreads the pods of a service, or of a ReplicaSet, StatefulSet or ReplicationController,
over hosts and zones even if they do not ask for it. The selector is everything that those say,
together.
"""

from __future__ import annotations

from collections import defaultdict

from bayplan.fit.shapes.reads import LabelReads, keys_of
from bayplan.fit.shapes.shape import Shape
from bayplan.kube.meta import Labels
from bayplan.kube.selectors import EVERYTHING, Selector, compile_selector, selector_from_labels
from bayplan.kube.workloads import ReplicaSet, ReplicationController, Service, StatefulSet

Controller = ReplicaSet | ReplicationController | StatefulSet


class Workloads:
    """Services by namespace, and the selectors of controllers."""

    def __init__(self, reads: LabelReads) -> None:
        self._reads = reads
        self.services: dict[str, dict[str, Service]] = defaultdict(dict)
        self.controllers: dict[tuple[str, str], Controller] = {}
        self.generations: dict[str, int] = defaultdict(int)
        """Moves for a namespace whenever a service or controller of it changes."""

    def put_service(self, service: Service) -> None:
        """Add or replace a service."""
        before = self.services[service.namespace].get(service.name)
        self.services[service.namespace][service.name] = service
        self._reads.heed(service.namespace, service.spec.selector)
        if before is not None:
            self._reads.drop(service.namespace, before.spec.selector)
        self.generations[service.namespace] += 1

    def remove_service(self, key: str) -> None:
        """Forget a service."""
        namespace, _, name = key.partition("/")
        gone = self.services[namespace].pop(name)
        self._reads.drop(namespace, gone.spec.selector)
        self.generations[namespace] += 1

    def put_controller(self, controller: Controller) -> None:
        """Add or replace a controller."""
        key = (type(controller).__name__, controller.key)
        before = self.controllers.get(key)
        self.controllers[key] = controller
        self._reads.heed(controller.namespace, keys_of(_selector(controller)))
        if before is not None:
            self._reads.drop(before.namespace, keys_of(_selector(before)))
        self.generations[controller.namespace] += 1

    def remove_controller(self, kind: str, key: str) -> None:
        """Forget a controller."""
        gone = self.controllers.pop((kind, key))
        self._reads.drop(gone.namespace, keys_of(_selector(gone)))
        self.generations[key.partition("/")[0]] += 1

    def selector_for(self, shape: Shape) -> Selector:
        """What the services and the controller behind a shape select; EVERYTHING if there are
        none.
        """
        merged: Labels = {}
        for service in self.services.get(shape.namespace, {}).values():
            wanted = service.spec.selector
            if wanted and selector_from_labels(wanted).matches(shape.labels):
                merged |= wanted
        owner = self._owner(shape)
        if isinstance(owner, ReplicationController):
            merged |= owner.spec.selector
        selector = selector_from_labels(merged) if merged else EVERYTHING
        if owner is None or isinstance(owner, ReplicationController):
            return selector
        return _both(selector, _selector(owner))

    def _owner(self, shape: Shape) -> Controller | None:
        if shape.owner is None:
            return None
        kind, name = shape.owner
        return self.controllers.get((kind, f"{shape.namespace}/{name}"))


def _selector(controller: Controller) -> Selector:
    if isinstance(controller, ReplicationController):
        return selector_from_labels(controller.spec.selector)
    return compile_selector(controller.spec.selector)


def _both(one: Selector, other: Selector) -> Selector:
    """Everything that both require; a selector of nothing adds no requirements here."""
    return Selector([*(one.requirements or ()), *(other.requirements or ())])
