"""Having runs made on a cluster: create, wait, gather, and leave nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import msgspec

from bayplan.client import Client, Untyped, untyped_kind
from bayplan.client.errors import ClientError, NotFoundError
from bayplan.client.resources import CONFIG_MAPS
from bayplan.client.verbs.writes import deletion, merge
from bayplan.lab.measuring import Measured
from bayplan.lab.simulating.orders import Order
from bayplan.lab.simulating.pool import Failure
from bayplan.lab.simulating.remote.objects import Place, belongings, job
from bayplan.lab.simulating.remote.packing import PackingError, result_in
from bayplan.lab.simulating.results import decode

JOBS = untyped_kind("Job")
POLL_SECONDS = 2.0
GRACE_SECONDS = 10.0
Done = Callable[[int], None]
"""Told how many runs are done."""
Gathered = tuple[list[tuple[Order, Measured]], list[Failure]]


async def run_on_cluster(
    client: Client, place: Place, inputs: bytes, orders: list[Order], done: Done
) -> Gathered:
    """Have all runs made; ClientError if the cluster does not let us."""
    async with _created(client, place, inputs):
        said = await _finished(client, place, done)
        return await _gathered(client, place, orders, said)


@asynccontextmanager
async def _created(client: Client, place: Place, inputs: bytes) -> AsyncIterator[None]:
    """The Job and all that it needs, while the context lasts."""
    try:
        made = await client.create(job(place), JOBS)
        meta = made["metadata"]
        uid = str(meta["uid"]) if isinstance(meta, dict) else ""
        for one in belongings(place, uid, inputs):
            await client.create(one)
        going = merge({"spec": {"suspend": False}})
        await client.patch(JOBS, place.namespace, place.name, change=going)
        yield
    finally:
        await asyncio.shield(_cleaned_up(client, place))


async def _cleaned_up(client: Client, place: Place) -> None:
    """Delete the Job, with which everything goes; if that fails, it goes by itself in an hour."""
    with suppress(NotFoundError, TimeoutError):
        async with asyncio.timeout(GRACE_SECONDS):
            options = deletion(propagation="Background")
            await client.delete(JOBS, place.namespace, place.name, options=options)


async def _finished(client: Client, place: Place, done: Done) -> str:
    """Wait for the Job's end; returns why it failed, if it did."""
    while True:
        found = await client.get(JOBS, place.namespace, place.name)
        status = found.get("status")
        status = status if isinstance(status, dict) else {}
        done(int(status.get("succeeded") or 0))
        ended = _ended(status)
        if ended is not None:
            return ended
        await client.clock.sleep(POLL_SECONDS)


def _ended(status: Untyped) -> str | None:
    conditions = status.get("conditions")
    for one in conditions if isinstance(conditions, list) else ():
        if isinstance(one, dict) and one.get("status") == "True":
            if one.get("type") == "Complete":
                return ""
            if one.get("type") == "Failed":
                return f"{one.get('reason')}: {one.get('message')}"
    return None


async def _gathered(client: Client, place: Place, orders: list[Order], said: str) -> Gathered:
    results: list[tuple[Order, Measured]] = []
    failures: list[Failure] = []
    for index, order in enumerate(orders):
        try:
            found = await client.get(CONFIG_MAPS, place.namespace, place.result(index))
            data = result_in(found)
            if data is None:
                failures.append(Failure(order, said or "its pod left no result"))
            else:
                results.append((order, decode(data)))
        except (PackingError, msgspec.DecodeError, ClientError) as problem:
            failures.append(Failure(order, f"its result cannot be used: {problem}"))
    return results, failures
