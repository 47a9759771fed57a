"""What a large cluster must not cost: not everything again for one change, and nothing for ever."""

from __future__ import annotations

import json
import zlib
from datetime import timedelta
from typing import Any

import msgspec

from bayplan.client import Change
from bayplan.fit import CacheLimits, Snapshot
from bayplan.fit.plugins.plugin import Cause
from bayplan.kube.events import Event
from bayplan.kube.meta import Condition, KubeObject, ObjectMeta, ObjectReference
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import PodGroup, PodGroupSpec
from bayplan.observe import Observer
from bayplan.ui import encoder
from bayplan.ui.encoder import PageSource
from bayplan.ui.picture.picture import MAX_TRIGGERS, TRIGGERED, Picture
from bayplan.ui.tables import COLUMNS
from tests.builders import make_node, make_pod
from tests.ui.pages import NOW, browsing, page_of, tables_of


def _observed(*objects: KubeObject, limits: CacheLimits | None = None) -> tuple[Observer, Picture]:
    observer = Observer(Snapshot(objects, limits=limits))
    picture = Picture(observer.snapshot, lambda: NOW)
    observer.listen(picture.hear)
    picture.draw_all()
    picture.tables.take_changes()
    return observer, picture


def _beats(pod: Pod, number: int) -> Pod:
    said = Condition(type="Ready", status="True", message=str(number))
    status = msgspec.structs.replace(pod.status, conditions=[said])
    return msgspec.structs.replace(pod, status=status)


def test_a_state_in_many_parts_is_the_tables_as_they_were() -> None:
    nodes = [make_node(f"n{number}").obj() for number in range(5)]
    page = page_of(*nodes, *(make_pod(f"p{number}").node("n1").obj() for number in range(4500)))
    tables = page.picture.tables
    taken = encoder.PageState(7, NOW, PageSource("live", "x", live=True), ["a note"], tables)
    before = {name: dict(rows) for name, rows in tables}
    tables.drop("pods", "default/p0")
    plain, packed = taken.encoded()
    state: dict[str, Any] = json.loads(plain)
    assert (state["seq"], state["notes"], list(state["tables"])) == (7, ["a note"], list(COLUMNS))
    assert tables_of(state) == before
    assert zlib.decompress(packed, 31) == plain


async def test_who_comes_while_the_first_picture_is_drawn_gets_the_whole_of_it() -> None:
    page = page_of(make_node("n1").obj())
    page.picture.tables.drop("nodes", "n1")
    page.picture.all()
    async with browsing(page) as browser:
        state = await browser.state()
    assert list(tables_of(state)["nodes"]) == ["n1"]


def test_causes_are_asked_again_only_after_something_changed_that_they_rest_on() -> None:
    placed = make_pod("a").cpu("1").node("n1").obj()
    node = make_node("n1").capacity(cpu="2", memory="1Gi", pods=10).obj()
    observer, picture = _observed(node, placed, make_pod("w").cpu("2").obj())
    assert not picture.pending.compute_one()
    for number in range(3):
        newer = _beats(placed, number)
        observer.handle(Change("updated", old=placed, new=newer))
        placed = newer
    picture.work()
    assert not picture.pending.compute_one()
    observer.handle(Change("deleted", old=placed))
    picture.draw_all()
    assert [row[1] for row in picture.tables["waiting"].values()] == [Cause.SCHEDULER.value]


def test_where_nobody_waits_the_trail_of_changes_stays_short() -> None:
    node = make_node("n1").capacity(cpu="9", memory="9Gi", pods=9).obj()
    observer, picture = _observed(node, limits=CacheLimits(changes=4096))
    trail = observer.snapshot.cluster.usage_changes
    for _ in range(trail._longest):
        pod = make_pod("p").node("n1").obj()
        observer.handle(Change("added", new=pod))
        observer.handle(Change("deleted", old=pod))
        if not trail.end % 1000:
            picture.work()
    picture.work()
    assert len(trail._entries) <= trail._longest


def test_a_group_that_changes_its_queue_has_only_its_own_pods_drawn_anew() -> None:
    mine = make_pod("mine").annotation("scheduling.k8s.io/group-name", "g").obj()
    other = make_pod("other").obj()
    _, picture = _observed(mine, other)
    group = PodGroup(metadata=ObjectMeta(namespace="default", name="g"))
    for queue in ("q1", "q2"):
        group = msgspec.structs.replace(group, spec=PodGroupSpec(queue=queue))
        picture.put_pod_group(group, group.key)
        assert list(picture._pods) == ["default/mine"]
        picture.draw_all()
        assert picture.tables["pods"]["default/mine"][9] == queue
    picture.put_pod_group(None, group.key)
    assert list(picture._pods) == ["default/mine"]


def test_a_pod_that_starts_is_looked_at_again_once_however_often_it_is_told_of() -> None:
    soon = NOW.isoformat().replace("+00:00", "Z")
    pod = make_pod("p").node("n1").phase("Pending").obj()
    pod.metadata.creation_timestamp = soon
    observer, picture = _observed(make_node("n1").obj(), pod)
    for number in range(20):
        newer = _beats(pod, number)
        observer.handle(Change("updated", old=pod, new=newer))
        pod = newer
        picture.work()
    assert len(picture._starting) == 1


def test_events_of_pods_that_are_long_gone_are_not_kept() -> None:
    _, picture = _observed(make_pod("w").obj())
    note = "pod triggered scale-up: [{general 1->2 (max: 9)}]"
    for number in range(MAX_TRIGGERS + 1):
        name = f"gone-{number}" if number else "w"
        picture.put_event(
            Event(
                metadata=ObjectMeta(namespace="default", name=f"e{number}"),
                reason=TRIGGERED,
                note=note,
                event_time=(NOW - timedelta(seconds=number)).isoformat(),
                regarding=ObjectReference(kind="Pod", namespace="default", name=name),
            )
        )
    picture.finish()
    assert list(picture._triggered) == ["default/w"]
