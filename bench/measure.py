"""How a case is measured and reported.

The machine is noisy, so a case is run several times and the best run counts. `limits.toml` holds
what each case must reach and the measurement that limit rests on; a line tells whether it was
reached, but nothing fails because of it.
"""

from __future__ import annotations

import gc
import json
import resource
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from bayplan.fit import Snapshot
from bayplan.kube.pods import Pod

LIMITS = Path(__file__).parent / "limits.toml"


@dataclass(frozen=True, slots=True)
class Result:
    """One figure."""

    case: str
    value: float
    unit: str


def peak_memory() -> float:
    """The most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident_memory(pid: int) -> float:
    """The memory that a process has now, in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / (1 << 20)


def placed_a_second(snapshot: Snapshot, pods: list[Pod], warm: int = 80) -> float:
    """Decisions a second, each assumed; the first `warm` pods have been evaluated before."""
    for pod in pods[:warm]:
        snapshot.decide(pod)
    gc.collect()
    gc.freeze()  # as a scheduler does once it has loaded its cluster
    start = time.perf_counter()
    for pod in pods:
        if snapshot.place(pod).node is None:
            raise RuntimeError(f"{pod.key} fits nowhere: the workload is wrong")
    rate = len(pods) / (time.perf_counter() - start)
    gc.unfreeze()
    return rate


def line(result: Result) -> str:
    """A figure as a JSON line, with its limit if there is one."""
    fields: dict[str, object] = {
        "case": result.case,
        "value": round(result.value, 4 if result.value < 10 else 1),
        "unit": result.unit,
    }
    limit = _limits().get(result.case)
    if limit is not None:
        fields["limit"] = limit
        least = limit.get("at_least")
        most = limit.get("at_most")
        fields["ok"] = (least is None or result.value >= least) and (
            most is None or result.value <= most
        )
    return json.dumps(fields)


def _limits() -> dict[str, dict[str, float]]:
    wanted = tomllib.loads(LIMITS.read_text())
    return {
        case: {key: value for key, value in entry.items() if key in ("at_least", "at_most")}
        for case, entry in wanted.items()
    }
