"""Upstream's workload files, read: cases, their workloads, and what each does step by step.

A case is a template of operations whose counts are parameters; a workload gives the parameters.
The files differ between releases, so fields that we do not know are kept and only refused where an
operation would need them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

SCHEDULER_PERF = Path("test/integration/scheduler_perf")
CONFIG = "performance-config.yaml"
NOT_HERE = {
    "allocResourceClaims": "dynamic resource allocation",
    "createResourceDriver": "dynamic resource allocation",
    "createPodGroups": "pod groups",
}
"""Operations on what Bayplan has not."""
_OF_PODS = frozenset(
    {
        "collectMetrics",
        "count",
        "duration",
        "namespace",
        "persistentVolumeClaimTemplatePath",
        "persistentVolumeTemplatePath",
        "podTemplatePath",
        "skipWaitToCompletion",
        "templateParams",
    }
)
_OF_NODES = frozenset(
    {
        "count",
        "labelNodePrepareStrategy",
        "nodeAllocatableStrategy",
        "nodeTemplatePath",
        "templateParams",
        "uniqueNodeLabelStrategy",
    }
)
_OF_ANY = frozenset({"count", "namespace", "templatePath", "templateParams"})
HONOURED: Mapping[str, frozenset[str]] = {
    "barrier": frozenset({"labelSelector", "namespaces", "stageRequirement"}),
    "churn": frozenset({"intervalMilliseconds", "mode", "namespace", "number", "templatePaths"}),
    "createAny": _OF_ANY,
    "createNamespaces": frozenset({"count", "namespaceTemplatePath", "prefix"}),
    "createNodes": _OF_NODES,
    "createPodSets": frozenset({"count", "createPodsOp", "namespacePrefix"}),
    "createPods": _OF_PODS,
    "deletePods": frozenset(
        {"deletePodsPerSecond", "labelSelector", "namespace", "skipWaitToCompletion"}
    ),
    "sleep": frozenset({"duration"}),
    "startCollectingMetrics": frozenset({"labelSelector", "name", "namespaces"}),
    "stopCollectingMetrics": frozenset(),
    "updateAny": _OF_ANY | {"subresources", "updatePerSecond"},
}
"""The operations, and which fields of each are used; a workload with other fields is left out."""


class WorkloadError(ValueError):
    """A workload file that cannot be used as it is."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One step, its parameters filled in."""

    opcode: str
    fields: Mapping[str, Any]
    folder: Path

    def count(self, name: str = "count", usual: int = 0) -> int:
        """Return a number of the step."""
        return int(self.fields.get(name) or usual)

    def text(self, name: str, usual: str = "") -> str:
        """Return a text of the step."""
        return str(self.fields.get(name) or usual)

    def flag(self, name: str) -> bool:
        """Return a switch of the step."""
        return bool(self.fields.get(name))

    def path(self, name: str) -> Path | None:
        """A file that the step names, next to the workload file."""
        said = self.fields.get(name)
        return None if said is None else (self.folder / str(said)).resolve()

    @property
    def not_honoured(self) -> list[str]:
        """Return the fields of the step that are not used here."""
        said = {name for name, value in self.fields.items() if value not in (None, False)}
        return sorted(said - HONOURED[self.opcode])

    def params(self) -> dict[str, Any]:
        """What templates are given besides their index."""
        return dict(self.fields.get("templateParams") or {})


@dataclass(frozen=True, slots=True)
class Workload:
    """One run: its name, its steps, and what upstream wants of it."""

    name: str
    """`folder/case/workload`."""
    operations: tuple[Operation, ...]
    labels: frozenset[str] = frozenset()
    threshold: float = 0.0
    """Pods a second below which upstream's own test fails; 0 if it has none."""
    gates: Mapping[str, bool] = field(default_factory=dict)
    default_pod: Path | None = None
    scheduler_config: Path | None = None
    problem: str = ""

    @property
    def left_out(self) -> str:
        """Why it cannot be run here, if it cannot."""
        if self.problem:
            return self.problem
        for operation in self.operations:
            if operation.opcode in NOT_HERE:
                return NOT_HERE[operation.opcode]
            if operation.opcode not in HONOURED:
                return f"the unknown operation {operation.opcode}"
            if unknown := operation.not_honoured:
                return f"{operation.opcode}'s {', '.join(unknown)}, which is not honoured here"
        if any(on and ("DRA" in gate or "DynamicRes" in gate) for gate, on in self.gates.items()):
            return "dynamic resource allocation"
        return ""


def read_workloads(checkout: Path) -> list[Workload]:
    """All workloads of a checkout of Kubernetes, or of its scheduler_perf folder."""
    root = checkout / SCHEDULER_PERF if (checkout / SCHEDULER_PERF).is_dir() else checkout
    files = sorted(root.rglob(CONFIG))
    if not files:
        raise WorkloadError(f"{checkout}: there is no {CONFIG} under {SCHEDULER_PERF}")
    return [found for file in files for found in _cases(file, root)]


def select(workloads: Sequence[Workload], names: Sequence[str]) -> list[Workload]:
    """Those whose name, or whose part of it, starts with one of these; else upstream's own choice.

    Upstream's performance tests are those labelled `performance`.
    """
    if not names:
        return [one for one in workloads if "performance" in one.labels]
    chosen = [one for one in workloads if any(_named(one.name, name) for name in names)]
    for name in names:
        if not any(_named(one.name, name) for one in chosen):
            raise WorkloadError(f"there is no workload {name!r}")
    return chosen


def _named(full: str, name: str) -> bool:
    """`misc`, `misc/SchedulingBasic`, `SchedulingBasic` and `SchedulingBasic/500Nodes` all do."""
    parts, wanted = full.split("/"), name.split("/")
    return any(
        parts[at : at + len(wanted) - 1] == wanted[:-1]
        and len(parts) >= at + len(wanted)
        and parts[at + len(wanted) - 1] == wanted[-1]
        for at in range(len(parts))
    )


def _cases(file: Path, root: Path) -> Iterator[Workload]:
    cases = yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader)
    if not isinstance(cases, list):
        raise WorkloadError(f"{file}: is no list of cases")
    place = file.parent.relative_to(root).as_posix()
    for case in cases:
        for workload in case.get("workloads") or ():
            yield _workload(case, workload, file.parent, place)


def _workload(
    case: Mapping[str, Any], workload: Mapping[str, Any], folder: Path, place: str
) -> Workload:
    name = f"{place}/{case['name']}/{workload['name']}"
    params = workload.get("params") or {}
    steps, problem = _steps(case["workloadTemplate"], params, folder)
    threshold = workload.get("threshold") or 0
    if isinstance(threshold, Mapping):
        threshold = next(iter(threshold.values()), 0)
    pod, config = case.get("defaultPodTemplatePath"), case.get("schedulerConfigPath")
    return Workload(
        name=name,
        operations=steps,
        problem=problem,
        labels=frozenset(workload.get("labels") or ()) | frozenset(case.get("labels") or ()),
        threshold=float(threshold),
        gates={**(case.get("featureGates") or {}), **(workload.get("featureGates") or {})},
        default_pod=(folder / pod).resolve() if pod else None,
        scheduler_config=(folder / config).resolve() if config else None,
    )


def _steps(
    template: Sequence[Mapping[str, Any]], params: Mapping[str, Any], folder: Path
) -> tuple[tuple[Operation, ...], str]:
    """The steps of a workload, or what is wrong with it."""
    try:
        filled = [_filled(step, params) for step in template]
    except WorkloadError as error:
        return (), str(error)
    return tuple(Operation(str(step.pop("opcode")), step, folder) for step in filled), ""


def _filled(step: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """The step with `fooParam: $bar` turned into `foo: <what bar is>`."""
    filled: dict[str, Any] = {}
    for key, value in step.items():
        if isinstance(value, str) and value.startswith("$"):
            filled[key.removesuffix("Param")] = _parameter(value[1:], params)
        elif isinstance(value, Mapping):
            filled[key] = _filled(value, params)
        else:
            filled.setdefault(key, value)
    if "countMultiplier" in filled:
        filled["count"] = int(filled.get("count") or 0) * int(filled.pop("countMultiplier"))
    return filled


def _parameter(said: str, params: Mapping[str, Any]) -> Any:
    """What `name`, or `name|default`, stands for."""
    key, has_default, default = said.partition("|")
    if key in params:
        return params[key]
    if not has_default:
        raise WorkloadError(f"the missing parameter ${key}")
    return yaml.load(default, Loader=yaml.CSafeLoader)
