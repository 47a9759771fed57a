"""Comparing Bayplan's answers with those recorded, and counting where they agree."""

from __future__ import annotations

from dataclasses import dataclass, field

from bayplan.fit import Profile, Refusal, Snapshot
from bayplan.fit.evaluation.verdicts import verdicts
from bayplan.fit.preemption import preempt
from bayplan.kube.codec import decode_object
from bayplan.kube.pods import Pod
from tests.oracle import queues, scaledown, scaleup
from tests.oracle.apiserver import Comparison
from tests.oracle.corpus import (
    Case,
    Decision,
    Expectation,
    QueueCase,
    ScaleDownCase,
    ScaleUpCase,
)


@dataclass
class Score:
    """How many answers of one kind agree, of how many."""

    right: int = 0
    asked: int = 0

    def note(self, agrees: bool) -> None:
        """Count one answer."""
        self.asked += 1
        self.right += agrees

    def __str__(self) -> str:
        return f"{self.right}/{self.asked}"


@dataclass
class Tally:
    """The figures of a whole run, and what disagreed."""

    verdicts: Score = field(default_factory=Score)
    reasons: Score = field(default_factory=Score)
    scores: Score = field(default_factory=Score)
    preemption: Score = field(default_factory=Score)
    scale_up: Score = field(default_factory=Score)
    scale_down: Score = field(default_factory=Score)
    queues: dict[queues.Section, Score] = field(
        default_factory=lambda: {section: Score() for section in queues.SECTIONS}
    )
    apiserver: Score = field(default_factory=Score)
    differences: list[str] = field(default_factory=list)

    @property
    def asked(self) -> int:
        """How many answers were asked for."""
        scores = (self.verdicts, self.scale_up, self.scale_down, self.apiserver)
        return sum(score.asked for score in (*scores, *self.queues.values()))

    @property
    def is_full(self) -> bool:
        """Whether everything agrees."""
        return not self.differences

    def __str__(self) -> str:
        of_queues = "".join(f", queue-{name} {score}" for name, score in self.queues.items())
        return (
            f"verdicts {self.verdicts}, reasons {self.reasons}, scores {self.scores}, "
            f"preemption {self.preemption}, scale-up {self.scale_up}, scale-down {self.scale_down}"
            f"{of_queues}, apiserver {self.apiserver}"
        )

    def note(self, score: Score, where: str, ours: object, theirs: object) -> None:
        """Count one answer and keep it if it differs."""
        score.note(ours == theirs)
        if ours != theirs:
            self.differences.append(f"{where}: ours {ours}, kube-scheduler's {theirs}")

    def note_sessions(self, comparison: Comparison) -> None:
        """Count answers of the API server: those whose status, reason and causes are equal."""
        for judged in comparison.judged:
            self.apiserver.note(judged.reasons_agree)
            if not judged.reasons_agree:
                self.differences.append(str(judged))


def compare(case: Decision, tally: Tally) -> None:
    """Put one case to Bayplan and count the answers."""
    if isinstance(case, QueueCase):
        _compare_queues(case, tally)
        return
    if isinstance(case, ScaleDownCase):
        problems = scaledown.differences(case)
        tally.scale_down.note(not problems)
        tally.differences.extend(problems)
        return
    if isinstance(case, ScaleUpCase):
        for found in scaleup.differences(case).values():
            tally.scale_up.note(not found)
            tally.differences.extend(found)
        return
    objects, pod = [decode_object(obj) for obj in case.objects], decode_object(case.pod)
    assert isinstance(pod, Pod)
    for expected in case.expect:
        gate = expected.gates.get("VolumeLimitScaling", False)
        snapshot = Snapshot(objects, profile=Profile.kubernetes(volume_limit_scaling=gate))
        _compare_filters(case, expected, snapshot, pod, tally)
        if expected.preempt is not None:
            _compare_preemption(case, expected, snapshot, pod, tally)


def _compare_queues(case: QueueCase, tally: Tally) -> None:
    """Count what Volcano decided about queues, but for what shows a defect of Volcano's."""
    if case.quirk:
        return
    for answer in queues.answers(case):
        tally.queues[answer.section].note(answer.agrees)
        if not answer.agrees:
            told = f"{case.name} {answer.path}: ours {answer.ours}, Volcano's {answer.theirs}"
            tally.differences.append(told)


def _compare_filters(
    case: Case, expected: Expectation, snapshot: Snapshot, pod: Pod, tally: Tally
) -> None:
    evaluation = snapshot.evaluation(pod)
    if isinstance(evaluation, Refusal):
        _compare_refused(case, expected, evaluation, tally)
        return
    if expected.prefilter is not None:
        tally.note(tally.verdicts, case.id, "asked nodes", expected.prefilter)
        return
    ours = verdicts(evaluation)
    for name, theirs in (expected.nodes or {}).items():
        refusal = ours.refusals.get(name)
        tally.note(tally.verdicts, f"{case.id} {name}", refusal is None, theirs["fits"])
        if not theirs["fits"]:
            want = (theirs["code"], theirs["plugin"], sorted(theirs.get("reasons") or []))
            tally.note(tally.reasons, f"{case.id} {name}", _shown(refusal), want)
    for name, theirs in (expected.scores or {}).items():
        have = {k: v for k, v in ours.scores.get(name, {}).items() if v or k == "total"}
        wanted = {k: v for k, v in theirs.items() if v or k == "total"}
        tally.note(tally.scores, f"{case.id} {name}", have, wanted)


def _compare_refused(case: Case, expected: Expectation, refusal: Refusal, tally: Tally) -> None:
    theirs = expected.prefilter
    tally.note(tally.verdicts, case.id, True, theirs is not None)
    if theirs is not None:
        want = (theirs["code"], theirs["plugin"], sorted(theirs["reasons"]))
        tally.note(tally.reasons, case.id, _shown(refusal), want)


def _compare_preemption(
    case: Case, expected: Expectation, snapshot: Snapshot, pod: Pod, tally: Tally
) -> None:
    theirs = expected.preempt or {}
    found = preempt(snapshot, pod)
    ours = (found.node or "", sorted(victim.key for victim in found.victims))
    want = (theirs["node"], sorted(theirs.get("victims") or []))
    if theirs.get("message"):
        tally.note(tally.preemption, case.id, (*ours, found.message), (*want, theirs["message"]))
    else:
        tally.note(tally.preemption, case.id, ours, want)


def _shown(refusal: Refusal | None) -> object:
    return refusal and (refusal.code, refusal.plugin, sorted(refusal.reasons))
