"""Azure throttled, broken, silent or incomprehensible: nothing is lost, doubled or disclosed."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys

import pytest
from aiohttp import web
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError

from bayplan.autoscaler.providers.azure.connection import AzureLimits
from bayplan.nodegroups import (
    InvalidRequestError,
    NodeGroupError,
    NodeGroupNotFoundError,
    ProviderUnavailableError,
    QuotaExceededError,
    RefusedError,
)
from tests.autoscaler.providers.azure.conftest import HASTE, FakeCredential, Opened
from tests.autoscaler.providers.azure.fake_azure import TOKEN, FakeAzure, refusal
from tests.autoscaler.providers.azure.test_instances import refs
from tests.embedded.cloud.clouds import ManualClock

pytestmark = pytest.mark.whole


async def test_a_throttled_call_is_sent_again_after_the_pause_that_azure_asks_for(
    azure: FakeAzure, opened: Opened, clock: ManualClock
) -> None:
    azure.scale_set(size=1)
    async with opened("0:4:workers") as provider:
        for operation in ("list", "resize", "delete"):
            azure.fails(operation, "TooManyRequests", 429, times=2, headers={"Retry-After": "3"})
        before = clock.moment
        await opened.later(provider)
        await provider.increase("workers", 1)
        await provider.delete_nodes("workers", refs(0))
        assert (clock.moment - before).total_seconds() == pytest.approx(61.0 + 18.0)
        assert azure.deleted == ["workers/0"]
        assert azure.sets["workers"].capacity == 1


async def test_during_a_long_pause_nothing_is_sent(
    azure: FakeAzure, opened: Opened, clock: ManualClock
) -> None:
    azure.scale_set(size=1)
    async with opened("0:4:workers") as provider:
        azure.fails("list", "TooManyRequests", 429, headers={"Retry-After": "120"})
        with pytest.raises(ProviderUnavailableError, match="TooManyRequests"):
            await opened.later(provider)
        azure.asked.clear()
        azure.troubles.clear()
        for _ in range(2):
            with pytest.raises(ProviderUnavailableError, match="called again in"):
                await opened.later(provider, 40.0)
        with pytest.raises(ProviderUnavailableError, match="called again in"):
            await provider.increase("workers", 1)
        assert azure.asked == []
        assert await provider.target_size("workers") == 1
        await opened.later(provider, 41.0)
        assert azure.asked[0] == "list"


async def test_what_stays_throttled_is_given_up_and_nothing_is_forgotten(
    azure: FakeAzure, opened: Opened
) -> None:
    azure.scale_set(size=1)
    async with opened("0:4:workers") as provider:
        azure.fails("list", "TooManyRequests", 429)
        with pytest.raises(ProviderUnavailableError, match="TooManyRequests"):
            await opened.later(provider)
        assert azure.asked.count("list") == 5
        assert len(await provider.instances("workers")) == 1
        azure.fails("resize", "TooManyRequests", 429)
        with pytest.raises(ProviderUnavailableError):
            await provider.increase("workers", 1)
        assert azure.asked.count("resize") == 4
        assert await provider.target_size("workers") == 1


@pytest.mark.parametrize(
    ("code", "status", "message", "kind"),
    [
        ("InternalServerError", 500, "", ProviderUnavailableError),
        ("ServiceUnavailable", 503, "", ProviderUnavailableError),
        ("AnotherOperationInProgress", 409, "", ProviderUnavailableError),
        ("OperationNotAllowed", 409, "exceeding approved quota", QuotaExceededError),
        ("OperationNotAllowed", 409, "the scale set is locked", RefusedError),
        ("QuotaExceeded", 400, "", QuotaExceededError),
        ("SkuNotAvailable", 409, "", RefusedError),
        ("InvalidParameter", 400, "", InvalidRequestError),
        ("AuthorizationFailed", 403, "", RefusedError),
        ("ResourceNotFound", 404, "", NodeGroupNotFoundError),
    ],
)
async def test_an_error_has_its_meaning_and_a_write_is_sent_once(
    azure: FakeAzure,
    opened: Opened,
    code: str,
    status: int,
    message: str,
    kind: type[NodeGroupError],
) -> None:
    azure.scale_set(size=1)
    async with opened("0:4:workers") as provider:
        azure.fails("resize", code, status, message=message)
        with pytest.raises(kind, match=code) as refused:
            await provider.increase("workers", 1)
        assert type(refused.value) is kind
        assert azure.asked.count("resize") == 1
        assert await provider.target_size("workers") == 1


async def test_a_conflict_that_stays_is_given_up(azure: FakeAzure, opened: Opened) -> None:
    azure.scale_set(size=1)
    async with opened("0:4:workers") as provider:
        azure.fails("resize", "PreconditionFailed", 412)
        with pytest.raises(ProviderUnavailableError, match="PreconditionFailed"):
            await provider.increase("workers", 1)
        assert azure.asked.count("resize") == 3
        assert azure.asked.count("get") == 3


async def test_a_write_whose_answer_is_lost_is_not_doubled(
    azure: FakeAzure, opened: Opened
) -> None:
    made = azure.scale_set(size=3)
    async with opened("0:9:workers") as provider:

        async def lost(request: web.Request) -> web.Response:
            azure.troubles.clear()
            await (azure._resize if request.method == "PATCH" else azure._delete)(request)
            return refusal("InternalServerError", 500)

        azure.troubles["resize"] = lost
        with pytest.raises(ProviderUnavailableError):
            await provider.increase("workers", 1)
        await provider.refresh()
        assert await provider.target_size("workers") == made.capacity == 4
        azure.troubles["delete"] = lost
        with pytest.raises(ProviderUnavailableError):
            await provider.delete_nodes("workers", refs(1))
        await provider.delete_nodes("workers", refs(1))
        assert azure.deleted == ["workers/1"]
        assert await provider.target_size("workers") == made.capacity == 3


async def test_silence_has_an_end(azure: FakeAzure, opened: Opened) -> None:
    azure.scale_set(size=1)
    async with opened("0:4:workers", limits=HASTE) as provider:
        azure.hangs("resize")
        with pytest.raises(ProviderUnavailableError, match="ServiceResponseTimeoutError"):
            await provider.increase("workers", 1)
        azure.hangs("list")
        with pytest.raises(ProviderUnavailableError):
            await opened.later(provider)
        assert await provider.target_size("workers") == 1


async def test_an_address_without_a_server_is_an_error(opened: Opened) -> None:
    with pytest.raises(ProviderUnavailableError, match="ServiceRequestError"):
        async with opened("0:4:workers", url="http://127.0.0.1:9"):
            pass


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<html>hello</html>",
        "{}",
        "[]",
        "null",
        '{"value": 5}',
        '{"value": [5]}',
        '{"value": [null]}',
        '{"value": [{"name": "workers", "sku": {"capacity": "many"}}]}',
        '{"value": [{"name": "workers"',
    ],
)
async def test_an_answer_that_is_not_azures_is_an_error_or_a_problem(
    azure: FakeAzure, opened: Opened, body: str
) -> None:
    azure.scale_set(size=1)
    async with opened("0:4:workers") as provider:
        azure.says("list", body)
        try:
            await opened.later(provider)
        except ProviderUnavailableError:
            assert await provider.target_size("workers") == 1
        else:
            assert await provider.groups() == []
            problems = await provider.problems()
            assert any("workers" in one.group for one in problems)


async def test_a_scale_set_that_cannot_be_read_spoils_no_other(
    azure: FakeAzure, opened: Opened
) -> None:
    azure.scale_set("good", size=1)
    good = {"name": "good", "location": "westeurope", "sku": {"name": "x", "capacity": 1}}
    bad = {"name": "bad", "sku": {"capacity": -1}}
    azure.says("list", json.dumps({"value": [bad, good]}))
    async with opened("0:4:good", "0:4:bad") as provider:
        assert [one.id for one in await provider.groups()] == ["good"]
        (problem,) = await provider.problems()
        assert (problem.group, "cannot be read" in problem.text) == ("bad", True)


async def test_a_scale_set_whose_instances_cannot_be_read_does_not_answer_and_others_do(
    azure: FakeAzure, opened: Opened
) -> None:
    azure.scale_set("bad", size=1)
    azure.scale_set("good", size=1)

    async def broken(request: web.Request) -> web.Response | None:
        return refusal("Broken", 500) if "/bad/" in request.path else None

    azure.troubles["vms"] = broken
    async with opened("0:4:good", "0:4:bad") as provider:
        assert len(await provider.instances("good")) == 1
        for call in (provider.instances, provider.target_size):
            with pytest.raises(ProviderUnavailableError, match="Broken"):
                await call("bad")
        with pytest.raises(ProviderUnavailableError, match="Broken"):
            await provider.delete_nodes("bad", refs(0, name="bad"))
    assert azure.deleted == []


async def test_pages_have_an_end_and_stay_at_azures_address(
    azure: FakeAzure, opened: Opened
) -> None:
    count = [0]

    async def endless(request: web.Request) -> web.Response:
        count[0] += 1
        link = f"{azure.url}{request.path}?api-version=2024-07-01&page={count[0]}"
        return web.json_response({"value": [], "nextLink": link})

    azure.troubles["list"] = endless
    with pytest.raises(ProviderUnavailableError, match=r"more than 1000 pages|did not answer"):
        async with opened("0:4:workers"):
            pass
    assert count[0] <= 1000
    azure.says("list", '{"value": [], "nextLink": "https://elsewhere.example/steal"}')
    with pytest.raises(ProviderUnavailableError, match="continues at another address"):
        async with opened("0:4:workers"):
            pass


async def test_redirects_are_not_followed(azure: FakeAzure, opened: Opened) -> None:
    async def elsewhere(_: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": f"{azure.url}/elsewhere"})

    azure.troubles["list"] = elsewhere
    with pytest.raises(ProviderUnavailableError):
        async with opened("0:4:workers"):
            pass
    assert set(azure.asked) == {"list"}


async def test_an_answer_that_is_too_large_is_not_read(azure: FakeAzure, opened: Opened) -> None:
    azure.says("list", json.dumps({"value": [{"name": "x" * 200_000}]}))
    small = AzureLimits(body=100_000)
    with pytest.raises(ProviderUnavailableError, match="IncompleteReadError"):
        async with opened("0:4:workers", limits=small):
            pass


async def test_a_scale_set_that_is_gone_is_gone_in_the_next_loop(
    azure: FakeAzure, opened: Opened
) -> None:
    azure.scale_set(size=1)
    azure.scale_set("other", size=1)
    async with opened("0:4:workers", "0:4:other") as provider:
        del azure.sets["workers"]
        with pytest.raises(NodeGroupNotFoundError):
            await provider.increase("workers", 1)
        await opened.later(provider)
        assert [one.id for one in await provider.groups()] == ["other"]
        (problem,) = await provider.problems()
        assert problem.group == "workers"
        with pytest.raises(NodeGroupNotFoundError, match="there are: other"):
            await provider.instances("workers")


async def test_a_view_that_cannot_be_read_is_no_error_of_the_missing(
    azure: FakeAzure, opened: Opened
) -> None:
    made = azure.scale_set(size=0)
    async with opened("0:4:workers") as provider:
        made.never_comes, made.error = 1, ("AllocationFailed", "")
        azure.fails("view", "AuthorizationFailed", 403)
        await provider.increase("workers", 1)
        azure.settle()
        await provider.refresh()
        assert [one.error for one in await provider.instances("workers")] == [None]


async def test_force_deletion_is_asked_for_only_if_it_is_configured(
    azure: FakeAzure, opened: Opened
) -> None:
    asked: list[str] = []

    async def noted(request: web.Request) -> None:
        asked.append(request.query.get("forceDeletion", ""))

    for value in ("false", "true"):
        azure.scale_set(size=1)
        async with opened("0:4:workers", AZURE_ENABLE_FORCE_DELETE=value) as provider:
            azure.troubles["delete"] = noted
            await provider.delete_nodes("workers", refs(0))
    assert [one.lower() for one in asked] == ["", "true"]


async def test_no_token_is_ever_logged(
    azure: FakeAzure, opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    azure.scale_set(size=1)
    caplog.set_level(logging.DEBUG)
    async with opened("0:4:workers") as provider:
        await provider.increase("workers", 1)
        azure.fails("list", "AuthenticationFailed", 401)
        with pytest.raises(RefusedError) as refused:
            await opened.later(provider)
    assert TOKEN not in caplog.text
    assert TOKEN not in str(refused.value)


class RefusedCredential(FakeCredential):
    async def get_token(self, *scopes: str, **options: object) -> AccessToken:
        raise ClientAuthenticationError("AADSTS7000215: Invalid client secret 'hunter2'")


async def test_a_token_that_cannot_be_had_is_an_error_without_details(opened: Opened) -> None:
    with pytest.raises(ProviderUnavailableError) as refused:
        async with opened("0:4:workers", credential=RefusedCredential()):
            pass
    assert str(refused.value) == "cannot call Azure: ClientAuthenticationError AADSTS7000215"


async def run(code: str) -> str:
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


async def test_without_azures_libraries_the_error_names_the_extra() -> None:
    code = """
import sys
sys.modules["azure.mgmt.compute"] = sys.modules["azure.mgmt.compute.aio"] = None
from bayplan.autoscaler.providers import ProviderOptionError
from bayplan.autoscaler.providers.azure.connection import _require_libraries
try:
    _require_libraries()
except ProviderOptionError as error:
    print(error)
"""
    assert "install bayplan[azure]" in await run(code)


async def test_azures_libraries_are_imported_only_when_they_are_used() -> None:
    code = (
        "import bayplan.autoscaler.providers.azure, sys;"
        " print([one for one in sys.modules if one == 'azure' or one.startswith('azure.')])"
    )
    assert await run(code) == "[]"
