"""Admission of pods: priority, tolerations, runtime class, topology labels."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.embedded.apiserver.errors import StatusError, forbidden
from bayplan.embedded.apiserver.jsontypes import JsonObject, clone
from bayplan.embedded.apiserver.rest.backend import AdmissionRequest, Backend
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.validation.pods.resources import pod_requests
from bayplan.embedded.apiserver.validation.pods.updates import same_spec
from bayplan.kube import quantity

PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io"
RUNTIME_CLASSES = "runtimeclasses.node.k8s.io"
_UNWELL = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PLACES = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")

Rule = Callable[[AdmissionRequest], None]


class PodAdmission:
    """Admission of pods of one server."""

    def __init__(self, backend: Backend) -> None:
        self._store = backend.store
        self._default_class: tuple[int, JsonObject] = (-1, {})
        self.on_create: tuple[Rule, ...] = (
            self._priority,
            _default_tolerations,
            self._runtime_class,
            self._topology,
            _account,
        )
        self.on_update: tuple[Rule, ...] = (_keep_priority, _default_tolerations, self._topology)
        self.on_binding: tuple[Rule, ...] = (self._bound_topology,)

    def _priority(self, request: AdmissionRequest) -> None:
        spec = _spec(request)
        name = spec.get("priorityClassName") or ""
        found = self._priority_class(request, name) if name else self._default_priority()
        policy = found.get("preemptionPolicy", "PreemptLowerPriority")
        _settle(request, "priority", found.get("value") or 0, "the integer value of priority")
        _settle(request, "preemptionPolicy", policy, "the string value of PreemptionPolicy")
        if found.get("metadata") and not name:
            spec["priorityClassName"] = found["metadata"]["name"]

    def _priority_class(self, request: AdmissionRequest, name: str) -> JsonObject:
        entry = self._store.get(ObjectKey(PRIORITY_CLASSES, "", name))
        if entry is None:
            raise _refuse(request, f"no PriorityClass with name {name} was found")
        return entry.object()

    def _default_priority(self) -> JsonObject:
        """Return the class of pods that name none; cached until a class changes."""
        version = self._store.watch_cache(PRIORITY_CLASSES).end
        if self._default_class[0] != version:
            classes = (entry.object() for entry in self._store.list(PRIORITY_CLASSES))
            defaults = [one for one in classes if one.get("globalDefault")]
            found = min(defaults, key=lambda one: one.get("value") or 0, default={})
            self._default_class = (version, found)
        return self._default_class[1]

    def _runtime_class(self, request: AdmissionRequest) -> None:
        found = self._runtime(request)
        if found:
            _give_overhead(request, found)
            _give_scheduling(request, found.get("scheduling") or {})

    def _runtime(self, request: AdmissionRequest) -> JsonObject:
        name = _spec(request).get("runtimeClassName")
        if name is None:
            return {}
        entry = self._store.get(ObjectKey(RUNTIME_CLASSES, "", name))
        if entry is None:
            raise _refuse(request, f'pod rejected: RuntimeClass "{name}" not found')
        return entry.object()

    def validate_class(self, request: AdmissionRequest) -> None:
        """Refuse a second default priority class."""
        if not (request.object or {}).get("globalDefault"):
            return
        other = (self._default_priority().get("metadata") or {}).get("name")
        if other and (request.operation == "CREATE" or other != request.call.name):
            detail = (
                f"PriorityClass {other} is already marked as default. Only one default can exist"
            )
            raise _refuse(request, detail)

    def validate_new(self, request: AdmissionRequest) -> None:
        """Refuse a pod whose overhead differs from its runtime class."""
        spec = _spec(request)
        if spec.get("overhead") is None and spec.get("runtimeClassName") is None:
            return
        wanted = (self._runtime(request).get("overhead") or {}).get("podFixed")
        given = spec.get("overhead")
        if wanted is None and given is not None:
            detail = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise _refuse(request, f"pod rejected: {detail}")
        if wanted is not None and not _same_overhead(wanted, given):
            raise _refuse(request, _OTHER_OVERHEAD)

    def validate_resize(self, request: AdmissionRequest) -> None:
        """Refuse a resize unless the pod's node exists, supports it and is large enough."""
        spec, old = _spec(request), (request.old_object or {}).get("spec") or {}
        node = spec.get("nodeName") or ""
        if not node or spec == old:
            return
        entry = self._store.get(ObjectKey("nodes", "", node))
        if entry is None:
            raise _refuse(request, f'node "{node}" not found')
        system = entry.labels.get("kubernetes.io/os", "linux")
        if system != "linux":
            detail = f'pod resize is only supported on linux nodes, node "{node}" is "{system}"'
            raise _with_cause(_refuse(request, detail), "UnsupportedPlatform")
        allocatable = (entry.object().get("status") or {}).get("allocatable") or {}
        lacking = _exceeded_resources(spec, allocatable)
        if lacking:
            detail = f"node didn't have enough allocatable resources: {'; '.join(lacking)}"
            raise _with_cause(_refuse(request, detail), "NodeCapacity")

    def _topology(self, request: AdmissionRequest) -> None:
        """Set the topology labels of a pod that has a node."""
        pod = request.object or {}
        self._set_topology(pod, _spec(request).get("nodeName") or "")

    def _bound_topology(self, request: AdmissionRequest) -> None:
        binding = request.object or {}
        target = binding.get("target") or {}
        if target.get("kind") == "Node":
            self._set_topology(binding, target.get("name") or "")

    def _set_topology(self, obj: JsonObject, node: str) -> None:
        entry = self._store.get(ObjectKey("nodes", "", node)) if node else None
        labels = {} if entry is None else entry.labels
        where = {key: labels[key] for key in _PLACES if key in labels}
        if where:
            meta = obj.setdefault("metadata", {})
            meta["labels"] = {**(meta.get("labels") or {}), **where}


_OTHER_OVERHEAD = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"


def _spec(request: AdmissionRequest) -> JsonObject:
    spec: JsonObject = (request.object or {}).setdefault("spec", {})
    return spec


def _refuse(request: AdmissionRequest, detail: str) -> StatusError:
    kind = request.call.kind
    return forbidden(kind.group, kind.plural, request.call.name, detail)


def _with_cause(error: StatusError, reason: str) -> StatusError:
    return StatusError(
        error.code,
        error.reason,
        error.message,
        {**(error.details or {}), "causes": [{"reason": reason}]},
    )


def _exceeded_resources(spec: JsonObject, allocatable: JsonObject) -> list[str]:
    """Return the resources of which a pod requests more than a node has in total."""
    requested = pod_requests(spec)
    units = {"cpu": quantity.milli_value, "memory": quantity.value}
    return [
        f"{name}, requested: {counted(quantity.format_amount(requested[name]))}, allocatable: "
        f"{counted(allocatable.get(name) or '0')}"
        for name, counted in units.items()
        if name in requested and requested[name] > quantity.parse(allocatable.get(name) or "0")
    ]


def _settle(request: AdmissionRequest, field: str, value: object, what: str) -> None:
    """Set a field that comes from a class; refuse another value."""
    spec = _spec(request)
    if spec.get(field) not in (None, value):
        raise _refuse(
            request,
            f"{what} ({spec[field]}) must not be provided in pod spec; priority admission "
            f"controller computed {value} from the given PriorityClass name",
        )
    spec[field] = value


def _keep_priority(request: AdmissionRequest) -> None:
    """Keep the priority of the old pod in an update that omits it."""
    spec, old = _spec(request), (request.old_object or {}).get("spec") or {}
    for name in ("priority", "preemptionPolicy"):
        if spec.get(name) is None and old.get(name) is not None:
            spec[name] = old[name]


def _default_tolerations(request: AdmissionRequest) -> None:
    """Add the default tolerations: 300 seconds for not-ready and unreachable nodes."""
    spec = _spec(request)
    tolerations = spec.get("tolerations") or []
    missing = [key for key in _UNWELL if not any(_tolerates(one, key) for one in tolerations)]
    if missing:
        spec["tolerations"] = tolerations + [_for_five_minutes(key) for key in missing]


def _for_five_minutes(key: str) -> JsonObject:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


def _tolerates(toleration: JsonObject, key: str) -> bool:
    effects = (None, "", "NoExecute")
    return toleration.get("key") in (None, "", key) and toleration.get("effect") in effects


def _account(request: AdmissionRequest) -> None:
    spec = _spec(request)
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name


def _same_overhead(one: JsonObject | None, other: JsonObject | None) -> bool:
    return same_spec({"overhead": one or {}}, {"overhead": other or {}})


def _give_overhead(request: AdmissionRequest, runtime: JsonObject) -> None:
    if runtime.get("overhead") is None:
        return
    spec, overhead = _spec(request), runtime["overhead"].get("podFixed") or {}
    if spec.get("overhead") and not _same_overhead(spec["overhead"], overhead):
        raise _refuse(request, _OTHER_OVERHEAD)
    if overhead:
        spec["overhead"] = clone(overhead)


def _give_scheduling(request: AdmissionRequest, scheduling: JsonObject) -> None:
    spec = _spec(request)
    selector = spec.get("nodeSelector") or {}
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            both = f"nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {selector[key]}"
            raise _refuse(request, f"conflict: runtimeClass.scheduling.{both}")
        selector[key] = value
    if selector:
        spec["nodeSelector"] = selector
    more = scheduling.get("tolerations")
    if more:
        spec["tolerations"] = _merged([*(spec.get("tolerations") or ()), *clone(more)])


def _merged(tolerations: list[JsonObject]) -> list[JsonObject]:
    """Return the tolerations without those that another one covers."""
    kept: list[JsonObject] = []
    for index, one in enumerate(tolerations):
        covered = any(_covers(other, one) for other in kept)
        later = (other for other in tolerations[index + 1 :] if other != one)
        if not covered and not any(_covers(other, one) for other in later):
            kept.append(one)
    return kept


def _covers(wide: JsonObject, one: JsonObject) -> bool:
    if wide == one:
        return True
    operator, effect = wide.get("operator") or "Equal", wide.get("effect") or ""
    everything = not wide.get("key") and operator == "Exists"
    if (wide.get("key") or "") != (one.get("key") or "") and not everything:
        return False
    if effect and effect != (one.get("effect") or ""):
        return False
    limit, seconds = wide.get("tolerationSeconds"), one.get("tolerationSeconds")
    if effect == "NoExecute" and limit is not None and (seconds is None or seconds > limit):
        return False
    same = one.get("operator") == "Equal" and (one.get("value") or "") == (wide.get("value") or "")
    return operator == "Exists" or (operator == "Equal" and same)
