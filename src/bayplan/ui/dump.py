"""The page of a dump."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from bayplan.base.clock import Clock
from bayplan.fit import Profile, Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.observe import OBSERVED
from bayplan.ui.answers import PageAnswers
from bayplan.ui.encoder import PageSource
from bayplan.ui.page import ClusterPage
from bayplan.ui.picture.picture import Picture

_COUNTED = frozenset(OBSERVED)


def dump_page(  # noqa: PLR0913 - options with defaults
    objects: Sequence[KubeObject],
    name: str,
    clock: Clock,
    *,
    profile: Profile | None = None,
    answers: PageAnswers | None = None,
    notes: Iterable[str] = (),
    moment: datetime | None = None,
) -> ClusterPage:
    """Return the page of these objects at a time; now, if it is unknown."""
    snapshot = Snapshot(objects, profile=profile)
    answers = answers or PageAnswers()
    picture = Picture(snapshot, clock.now if moment is None else lambda: moment)
    page = ClusterPage(picture, PageSource("dump", name, live=False), clock, answers, moment=moment)
    for obj in objects:
        if type(obj) not in _COUNTED:
            page.extras.take(obj)
    page.picture.groups.update("declared", answers.groups())
    page.set_notes(notes)
    return page
