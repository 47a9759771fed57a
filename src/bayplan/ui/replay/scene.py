"""The state of a recording at one time, which can be played forward.

A recording is untrusted input: every object is validated like one from a cluster, and invalid ones
are set aside.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import islice

from bayplan.client import Change as InformerChange
from bayplan.fit import Profile, Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.observe import OBSERVED, Observer
from bayplan.recordings import ObjectIdentity, RecordedChange, RecordedObject, RecordedState
from bayplan.ui.answers import FrozenCluster, PageAnswers
from bayplan.ui.extras import Extras
from bayplan.ui.picture.picture import Picture

_ORDER = {kind: number for number, kind in enumerate(OBSERVED)}
_CAUSES_A_STEP = 20


class Scene:
    """A recorded cluster at one time."""

    def __init__(
        self, state: RecordedState, moment: datetime, profile: Profile | None, answers: PageAnswers
    ) -> None:
        self.seq = state.seq
        self.moment = moment
        self._answers = answers
        self._observer = Observer(Snapshot(profile=profile))
        self.picture = Picture(self._observer.snapshot, lambda: self.moment)
        self.extras = Extras(self.picture)
        self._known: dict[ObjectIdentity, RecordedObject] = {}
        self._observer.listen(self.picture.hear)
        self.picture.groups.update("declared", answers.groups())
        for identity, obj in sorted(state.objects.items(), key=lambda one: _order(one[1])):
            self._put(identity, obj)

    def play(self, changes: Iterable[RecordedChange], moment: datetime) -> None:
        """Apply the next changes."""
        self.moment = moment
        for change in changes:
            self._put(change.identity, change.object)
            self.seq = change.seq
        self.picture.tick()
        self.picture.work()
        for _ in islice(iter(self.picture.pending.compute_one, False), _CAUSES_A_STEP):
            pass
        self.picture.finish()

    def draw_all(self) -> None:
        """Draw everything, with queues and the next plan."""
        self.picture.draw_all()
        self.compute_reports()
        self.picture.tables.take_changes()

    def compute_reports(self) -> None:
        """Compute queues and the next plan, which takes longer than the rest."""
        frozen = self.frozen()
        queues, plan = self._answers.queues(frozen), self._answers.plan(frozen)
        self.picture.tables.replace("queues", queues.rows)
        self.picture.hold(dict(queues.held))
        if plan is not None:
            self.picture.tables.set("plans", plan)
        else:
            self.picture.tables.drop("plans", "next")
        self.picture.draw_all()

    def frozen(self) -> FrozenCluster:
        """Return a copy of the cluster at this time."""
        snapshot = self.picture.snapshot
        objects = [*snapshot.objects(), *self.extras.kept.values()]
        return FrozenCluster(objects, snapshot.profile, self.moment)

    def _put(self, identity: ObjectIdentity, obj: RecordedObject | None) -> None:
        before = self._known.pop(identity, None)
        if obj is not None:
            self._known[identity] = obj
        self._apply(before, obj)

    def _apply(self, before: RecordedObject | None, after: RecordedObject | None) -> None:
        newest = after if after is not None else before
        if isinstance(newest, dict):
            self.extras.take_untyped(newest, gone=after is None)
        elif newest is None:
            return
        elif type(newest) in _ORDER:
            old = before if isinstance(before, KubeObject) else None
            new = after if isinstance(after, KubeObject) else None
            kind = "deleted" if new is None else "added" if old is None else "updated"
            self._observer.handle(InformerChange(kind, old=old, new=new))  # type: ignore[arg-type]
        elif after is None:
            self.extras.drop(type(newest), newest.key)
        else:
            self.extras.take(newest)


def _order(obj: RecordedObject) -> int:
    return _ORDER.get(type(obj), len(_ORDER)) if isinstance(obj, KubeObject) else len(_ORDER)
