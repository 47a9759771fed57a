"""`python -m tests.fit.explanation.judge_fixes [FILE…]`: judge the fixes for refused pods.

Each fix must hold when it is tried on a fresh snapshot, have no step that it can do without, and
not be dominated by another. And where a single change would do, by brute force over a catalogue of
changes to everything in the cluster, a fix of one step must be on offer.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path

from bayplan.fit import Snapshot
from bayplan.fit.explanation import Fix, FixKind, explain
from bayplan.fit.explanation.proof import steps_without
from bayplan.fit.state.pods import placed_on
from bayplan.kube.codec import decode_object
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from tests.fit.explanation.single_changes import single_changes
from tests.oracle.corpus import CORPORA, read


@dataclass
class Judgement:
    """What was found over many pods."""

    pods: int = 0
    fixes: int = 0
    fixable: int = 0
    """Pods that one change would help."""
    offered: int = 0
    """Those of them for which a fix of one step is offered."""
    faults: list[str] = field(default_factory=list)
    missed: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        share = 100 * self.offered / max(self.fixable, 1)
        return (
            f"{self.pods} refused pods, {self.fixes} fixes, {len(self.faults)} faults;"
            f" one step helps {self.fixable}, and is offered for {self.offered} ({share:.1f} %)"
        )


def judge(objects: Sequence[KubeObject], pod: Pod, found: Judgement, name: str = "") -> None:
    """Judge the fixes for one pod, if it is refused."""
    snapshot = Snapshot(objects)
    explanation = explain(snapshot, pod)
    if explanation.fits:
        return
    found.pods += 1
    found.fixes += len(explanation.fixes)
    for fix in explanation.fixes:
        found.faults += [f"{name}: {fault}: {fix.summary}" for fault in _faults(objects, pod, fix)]
    for one, other in permutations(explanation.fixes, 2):
        if is_dominated(one, other):
            found.faults.append(f"{name}: {one.summary} is dominated by {other.summary}")
    changes = list(single_changes(snapshot, pod))
    if changes:
        found.fixable += 1
        offered = any(len(fix.steps) == 1 for fix in explanation.fixes)
        found.offered += offered
        if not offered:
            found.missed[changes[0].partition(":")[0]] += 1
            found.faults.append(f"{name}: not offered: {changes[:3]}")
    assert not list(snapshot.assumptions())


def is_dominated(one: Fix, other: Fix) -> bool:
    """Whether a fix asks for more than another on the same node or of the same objects."""
    same = one.node == other.node or _targets(one) == _targets(other)
    fewer = Counter(other.kinds) < Counter(one.kinds)
    graded = one.kinds == other.kinds == (FixKind.SMALLER_REQUEST,)
    cheaper = other.cost < one.cost if one.kinds == other.kinds else fewer
    if one.node != other.node and not fewer:
        cheaper = cheaper and graded and _asked(one) == _asked(other)
    return same and cheaper and other.cost <= one.cost


def _targets(fix: Fix) -> set[object]:
    return {step.target for step in fix.steps}


def _asked(fix: Fix) -> set[str]:
    return {step.less_of for step in fix.steps}


def _faults(objects: Sequence[KubeObject], pod: Pod, fix: Fix) -> Iterable[str]:
    fresh = Snapshot(objects)
    changed = fix.apply(fresh)
    if fresh.decide(changed).node != fix.node:
        yield "does not hold"
        return
    fresh.assume(changed, fresh.decision_on(changed, fix.node))
    for step in fix.steps:
        if step.kind is FixKind.MOVE_POD and not _stands(fresh, step.puts[0]):
            yield "moves a pod to where it does not fit"
    if not step_texts(fix):
        yield "says nothing"
    for index in range(len(fix.steps)) if len(fix.steps) > 1 else ():
        fresh = Snapshot(objects)
        fewer = steps_without(fresh, pod, fix.steps, index)
        for step in fewer:
            step.apply(fresh)
        if fresh.decide(fewer[-1].pod).node is not None:
            yield f"does without step {index}"


def step_texts(fix: Fix) -> bool:
    """Whether every step says what it does, to what, and how."""
    return all(
        step.text and step.target.name and (step.patch or step.command) for step in fix.steps
    )


def _stands(snapshot: Snapshot, moved: KubeObject) -> bool:
    assert isinstance(moved, Pod)
    with snapshot.fork():
        snapshot.put(placed_on(moved, ""))
        return snapshot.refusal(placed_on(moved, ""), moved.spec.node_name) is None


def judge_corpus(path: Path, found: Judgement, every: int = 1) -> Judgement:
    """Judge the fixes for the pods of a corpus, or one in `every`."""
    for case in list(read(path))[::every]:
        pod = decode_object({**case.pod, "kind": "Pod"})
        assert isinstance(pod, Pod)
        judge([decode_object(one) for one in case.objects], pod, found, case.id)
    return found


def main(arguments: list[str]) -> int:
    """Judge corpora; 0 if there is no fault."""
    paths = [Path(one) for one in arguments]
    found = Judgement()
    for path in paths or [CORPORA / f"{name}.ndjson.gz" for name in ("scheduler", "preemption")]:
        judge_corpus(path, found)
    for fault in found.faults[:40]:
        print(fault)  # noqa: T201 - this is a command
    print(dict(found.missed), found)  # noqa: T201
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
