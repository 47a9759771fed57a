"""AWS as moto plays it, in a process of its own, behind a wire on which things can go wrong."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from random import Random
from typing import Any
from urllib.request import Request, urlopen

import pytest

from bayplan.autoscaler.providers.aws import open_provider
from bayplan.autoscaler.providers.aws.sdk import AwsTimeouts, new_session
from bayplan.autoscaler.providers.options import ProviderOptions
from bayplan.client import Client
from bayplan.embedded.apiserver.config import PlaneConfig
from bayplan.embedded.apiserver.controlplane import ControlPlane
from bayplan.embedded.inprocess import in_process_client
from bayplan.nodegroups import Provider
from tests.autoscaler.providers.aws.account import REGION, Account
from tests.autoscaler.providers.aws.wire import Wire, wired
from tests.embedded.cloud.clouds import ManualClock

_RUNNING = re.compile(r"Running on (http://[0-9.]+:\d+)")
LIMITS = AwsTimeouts(connect=2.0, read=10.0, whole=30.0)
HASTE = AwsTimeouts(connect=2.0, read=0.5, whole=10.0)


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """Where moto's server is."""
    command = [sys.executable, "-c", "from moto.server import main; main()"]
    process = subprocess.Popen(
        [*command, "-H", "127.0.0.1", "-p", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        found = (_RUNNING.search(line) for line in process.stderr)
        yield next(one[1] for one in found if one)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
async def wire(moto: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Wire]:
    """A fresh account behind a wire, which boto3 finds by its usual variables."""
    reset = Request(f"{moto}/moto-api/reset", method="POST")
    await asyncio.to_thread(lambda: urlopen(reset).read())
    async with wired(moto) as made:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "AKIASECRETKEYID",
            "AWS_SECRET_ACCESS_KEY": "very/secret",
            "AWS_ENDPOINT_URL": made.url,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_REGION": REGION,
            "AWS_CONFIG_FILE": "/nonexistent",
        }.items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture(scope="session")
def everything(moto: str) -> Account:
    """Who made the account; boto3 takes its time to get to know AWS, so only once."""
    return Account(moto)


@pytest.fixture(scope="session")
def session() -> Any:
    """boto3 once it has got to know AWS; who asks and whom is in the variables."""
    return new_session()


@pytest.fixture
async def account(wire: Wire, everything: Account) -> Account:
    return everything


@pytest.fixture
async def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def client(clock: ManualClock) -> AsyncIterator[Client]:
    """The cluster whose nodes they are."""
    plane = ControlPlane(PlaneConfig(clock=clock, rng=Random(1)))
    await plane.start()
    async with in_process_client(plane, rng=Random(1)) as made:
        yield made
    await plane.stop()


class Opened:
    """A provider of some groups, and its clock."""

    def __init__(self, client: Client, clock: ManualClock, session: Any) -> None:
        self._client = client
        self._clock = clock
        self._session = session

    def __call__(
        self, *nodes: str, discovery: tuple[str, ...] = (), limits: AwsTimeouts = LIMITS
    ) -> Opening:
        options = ProviderOptions("aws", None, nodes, discovery)
        known = {"AWS_REGION": REGION}
        return Opening(open_provider(options, self._client, known, limits, self._session))

    async def later(self, provider: Provider, seconds: float = 61.0) -> None:
        """The next round, so much later."""
        self._clock.moment += timedelta(seconds=seconds)
        await provider.refresh()


class Opening:
    """Opens, and asks for the first time."""

    def __init__(self, opened: AbstractAsyncContextManager[Provider]) -> None:
        self._opened = opened

    async def __aenter__(self) -> Provider:
        provider = await self._opened.__aenter__()
        await provider.refresh()
        return provider

    async def __aexit__(self, *_: object) -> None:
        await self._opened.__aexit__(None, None, None)


@pytest.fixture
async def opened(wire: Wire, client: Client, clock: ManualClock, session: Any) -> Opened:
    return Opened(client, clock, session)
