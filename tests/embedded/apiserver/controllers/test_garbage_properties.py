"""Whatever is owned by whom and deleted in whatever order, the collector ends with the truth."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from bayplan.embedded.apiserver.controllers.garbage import GarbageCollector
from bayplan.embedded.apiserver.request import DeletionOptions
from bayplan.embedded.apiserver.rest import deletion, writes
from bayplan.embedded.apiserver.rest.backend import Backend
from tests.embedded.apiserver.backends import call_of, new_backend

POLICIES = ("Background", "Foreground", "Orphan")


class Family(NamedTuple):
    """Objects by number, each with owners of lower numbers; and what is deleted, how."""

    owners: list[list[int]]
    deleted: list[tuple[int, str]]


@st.composite
def families(draw: st.DrawFn) -> Family:
    count = draw(st.integers(1, 7))
    owners = [
        draw(st.lists(st.integers(0, number - 1), max_size=2, unique=True)) if number else []
        for number in range(count)
    ]
    numbers = st.integers(0, count - 1)
    deleted = draw(st.lists(st.tuples(numbers, st.sampled_from(POLICIES)), max_size=3))
    return Family(owners, deleted)


def child(number: int, owners: list[Any]) -> dict[str, Any]:
    references = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner.key.name,
            "uid": owner.uid,
            "blockOwnerDeletion": True,
        }
        for owner in owners
    ]
    return {"metadata": {"name": f"c{number}", "ownerReferences": references}}


async def live_through(family: Family) -> Backend:
    backend = await new_backend()
    collector = GarbageCollector(backend)
    collector.start()
    made: list[Any] = []
    for number, owners in enumerate(family.owners):
        body = child(number, [made[owner] for owner in owners])
        made.append(await writes.create(backend, call_of(backend, "configmaps"), body))
    for number, policy in family.deleted:
        call = call_of(backend, "configmaps", f"c{number}")
        if backend.store.get(call.key) is not None:
            await deletion.delete(backend, call, DeletionOptions(propagation=policy))
        await collector.settled()
    await collector.stop()
    backend.store.close()
    return backend


@given(families())
def test_nothing_is_left_whose_owners_are_all_gone(family: Family) -> None:
    backend = asyncio.run(live_through(family))
    for entry in backend.store.list("configmaps"):
        living = [uid for uid in entry.owners if backend.store.by_uid(uid) is not None]
        assert living or not entry.owners
        assert not entry.is_terminating


@given(families())
def test_nothing_goes_that_nobody_deleted(family: Family) -> None:
    backend = asyncio.run(live_through(family))
    left = {entry.key.name for entry in backend.store.list("configmaps")}
    asked = {number for number, _ in family.deleted}
    for number, owners in enumerate(family.owners):
        if number not in asked and not owners:
            assert f"c{number}" in left
        if number not in asked and any(f"c{owner}" in left for owner in owners):
            assert f"c{number}" in left
