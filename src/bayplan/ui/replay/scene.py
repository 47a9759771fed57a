"""One moment of a recording, and how it goes on: the model, the picture, and what else is shown.

A recording comes from a file, and may hold anything: every object is checked like one from a
cluster, and what is unsound is set aside.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import islice

from bayplan.client import Change as Told
from bayplan.fit import Profile, Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.observe import OBSERVED, Observer
from bayplan.recordings import Change, Identity, Recorded, State
from bayplan.ui.answers import Answers, Still
from bayplan.ui.extras import Extras
from bayplan.ui.picture.picture import Picture

_ORDER = {kind: number for number, kind in enumerate(OBSERVED)}
_CAUSES_A_STEP = 20


class Scene:
    """A cluster as it was, and as it goes on."""

    def __init__(
        self, state: State, moment: datetime, profile: Profile | None, answers: Answers
    ) -> None:
        self.seq = state.seq
        self.moment = moment
        self._answers = answers
        self._observer = Observer(Snapshot(profile=profile))
        self.picture = Picture(self._observer.snapshot, lambda: self.moment)
        self.extras = Extras(self.picture)
        self._known: dict[Identity, Recorded] = {}
        self._observer.listen(self.picture.hear)
        self.picture.groups.say("declared", answers.groups())
        for identity, obj in sorted(state.objects.items(), key=lambda one: _order(one[1])):
            self._put(identity, obj)

    def play(self, changes: Iterable[Change], moment: datetime) -> None:
        """Let some more happen."""
        self.moment = moment
        for change in changes:
            self._put(change.identity, change.object)
            self.seq = change.seq
        self.picture.tick()
        self.picture.work()
        for _ in islice(iter(self.picture.waiting.ask_one, False), _CAUSES_A_STEP):
            pass
        self.picture.finish()

    def settle(self) -> None:
        """Draw all of it, with queues and the next plan."""
        self.picture.settle()
        self.think()
        self.picture.tables.take_changes()

    def think(self) -> None:
        """Work out queues, who waits for them, and the next plan, which takes longer than the
        rest.
        """
        still = self.still()
        queues, plan = self._answers.queues(still), self._answers.plan(still)
        self.picture.tables.replace("queues", queues.rows)
        self.picture.hold(dict(queues.held))
        if plan is not None:
            self.picture.tables.set("plans", plan)
        else:
            self.picture.tables.drop("plans", "next")
        self.picture.settle()

    def still(self) -> Still:
        """The cluster at this moment."""
        snapshot = self.picture.snapshot
        objects = [*snapshot.objects(), *self.extras.kept.values()]
        return Still(objects, snapshot.profile, self.moment)

    def _put(self, identity: Identity, obj: Recorded | None) -> None:
        before = self._known.pop(identity, None)
        if obj is not None:
            self._known[identity] = obj
        self._tell(before, obj)

    def _tell(self, before: Recorded | None, after: Recorded | None) -> None:
        newest = after if after is not None else before
        if isinstance(newest, dict):
            self.extras.take_untyped(newest, gone=after is None)
        elif newest is None:
            return
        elif type(newest) in _ORDER:
            old = before if isinstance(before, KubeObject) else None
            new = after if isinstance(after, KubeObject) else None
            kind = "deleted" if new is None else "added" if old is None else "updated"
            self._observer.take(Told(kind, old=old, new=new))  # type: ignore[arg-type]
        elif after is None:
            self.extras.drop(type(newest), newest.key)
        else:
            self.extras.take(newest)


def _order(obj: Recorded) -> int:
    return _ORDER.get(type(obj), len(_ORDER)) if isinstance(obj, KubeObject) else len(_ORDER)
