"""The page of a cluster that stands still: a dump."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from bayplan.base.clock import Clock
from bayplan.fit import Profile, Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.observe import OBSERVED
from bayplan.ui.answers import Answers
from bayplan.ui.encoding import Source
from bayplan.ui.page import Page
from bayplan.ui.picture.picture import Picture

_COUNTED = frozenset(OBSERVED)


def still_page(  # noqa: PLR0913 - each says its own
    objects: Sequence[KubeObject],
    name: str,
    clock: Clock,
    *,
    profile: Profile | None = None,
    answers: Answers | None = None,
    notes: Iterable[str] = (),
    moment: datetime | None = None,
) -> Page:
    """The page of these objects, as they were at that moment; now, if nobody knows."""
    snapshot = Snapshot(objects, profile=profile)
    answers = answers or Answers()
    picture = Picture(snapshot, clock.now if moment is None else lambda: moment)
    page = Page(picture, Source("dump", name, live=False), clock, answers, moment=moment)
    for obj in objects:
        if type(obj) not in _COUNTED:
            page.extras.take(obj)
    page.picture.groups.say("declared", answers.groups())
    page.set_notes(notes)
    return page
