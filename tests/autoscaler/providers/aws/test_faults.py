"""AWS busy, broken, silent, or talking nonsense: nothing is lost, doubled, waited for or leaked."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys

import pytest
from aiohttp import web

from bayplan.nodegroups import (
    InvalidRequestError,
    NodeGroupError,
    NodeGroupNotFoundError,
    NodeRef,
    ProviderUnavailableError,
    QuotaExceededError,
    RefusedError,
)
from tests.autoscaler.providers.aws.account import Account
from tests.autoscaler.providers.aws.conftest import HASTE, Opened
from tests.autoscaler.providers.aws.wire import Wire, refusal

pytestmark = pytest.mark.whole


DESCRIBE = "DescribeAutoScalingGroups"
RESIZE = "SetDesiredCapacity"
END = "TerminateInstanceInAutoScalingGroup"


async def test_what_aws_is_too_busy_for_is_asked_again(
    account: Account, opened: Opened, wire: Wire
) -> None:
    account.group(size=1)
    async with opened("0:4:workers") as provider:
        wire.fails(DESCRIBE, "Throttling", times=2)
        await opened.later(provider)
        assert await provider.target_size("workers") == 1
        wire.fails(RESIZE, "Throttling", times=2)
        await provider.increase("workers", 1)
        assert account.size() == 2
        wire.fails(END, "RequestLimitExceeded", times=2)
        await provider.refresh()
        (first, _) = await provider.instances("workers")
        await provider.delete_nodes("workers", [NodeRef(first.provider_id)])
        assert account.size() == 1


async def test_what_stays_busy_is_given_up_and_nothing_is_forgotten(
    account: Account, opened: Opened, wire: Wire
) -> None:
    account.group(size=1)
    async with opened("0:4:workers") as provider:
        wire.fails(DESCRIBE, "Throttling")
        with pytest.raises(ProviderUnavailableError, match="Throttling"):
            await opened.later(provider)
        assert await provider.target_size("workers") == 1
        assert len(await provider.instances("workers")) == 1
        del wire.troubles[DESCRIBE]
        wire.fails(RESIZE, "Throttling")
        with pytest.raises(ProviderUnavailableError):
            await provider.increase("workers", 1)
        assert await provider.target_size("workers") == 1
        assert wire.asked.count(RESIZE) == 4


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("InternalFailure", 500, ProviderUnavailableError),
        ("Whatever", 503, ProviderUnavailableError),
        ("ScalingActivityInProgress", 400, ProviderUnavailableError),
        ("LimitExceeded", 400, QuotaExceededError),
        ("ValidationError", 400, InvalidRequestError),
        ("AccessDenied", 403, RefusedError),
        ("InvalidGroup.NotFound", 400, NodeGroupNotFoundError),
    ],
)
async def test_refusals_are_what_they_mean(
    account: Account,
    opened: Opened,
    wire: Wire,
    code: str,
    status: int,
    kind: type[NodeGroupError],
) -> None:
    account.group(size=1)
    async with opened("0:4:workers") as provider:
        wire.fails(RESIZE, code, status)
        with pytest.raises(kind, match=code):
            await provider.increase("workers", 1)
        assert wire.asked.count(RESIZE) == 1
        assert await provider.target_size("workers") == 1


async def test_an_end_that_may_have_come_through_is_not_sent_twice(
    account: Account, opened: Opened, wire: Wire
) -> None:
    account.group(size=3)
    async with opened("0:4:workers") as provider:
        first = (await provider.instances("workers"))[0]
        account.scaling.terminate_instance_in_auto_scaling_group(
            InstanceId=first.provider_id.rpartition("/")[2], ShouldDecrementDesiredCapacity=True
        )
        wire.fails(END, "InternalFailure", 500)
        second = (await provider.instances("workers"))[1]
        with pytest.raises(ProviderUnavailableError):
            await provider.delete_nodes("workers", [NodeRef(second.provider_id)])
        assert wire.asked.count(END) == 1
        await provider.refresh()
        assert await provider.target_size("workers") == 2
        assert len(await provider.instances("workers")) == 2


async def test_silence_is_waited_for_only_so_long(
    account: Account, opened: Opened, wire: Wire
) -> None:
    account.group(size=1)
    async with opened("0:4:workers", limits=HASTE) as provider:
        wire.hangs(RESIZE)
        with pytest.raises(ProviderUnavailableError, match="cannot call AWS: ReadTimeoutError"):
            await provider.increase("workers", 1)
        wire.hangs(DESCRIBE)
        with pytest.raises(ProviderUnavailableError):
            await opened.later(provider)
        assert await provider.target_size("workers") == 1


async def test_nobody_there_is_told_as_that(
    account: Account, opened: Opened, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(ProviderUnavailableError, match="EndpointConnectionError"):
        async with opened("0:4:workers"):
            pass


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<html>hello</html>",
        "{}",
        "<DescribeAutoScalingGroupsResponse><DescribeAutoScalingGroupsResult>",
        "<a><b></a>",
    ],
)
async def test_half_an_answer_is_none(
    account: Account, opened: Opened, wire: Wire, body: str
) -> None:
    account.group(size=1)
    async with opened("0:4:workers") as provider:
        wire.says(DESCRIBE, body)
        try:
            await opened.later(provider)
        except ProviderUnavailableError:
            assert await provider.target_size("workers") == 1
        else:
            assert await provider.groups() == []
            (problem,) = await provider.problems()
            assert "there is no Auto Scaling group" in problem.text


async def test_a_group_that_aws_describes_badly_spoils_no_other(
    account: Account, opened: Opened, wire: Wire
) -> None:
    good = (
        "<member><AutoScalingGroupName>good</AutoScalingGroupName><MinSize>0</MinSize>"
        "<MaxSize>5</MaxSize><DesiredCapacity>0</DesiredCapacity></member>"
    )
    bad = "<member><AutoScalingGroupName>bad</AutoScalingGroupName><MinSize>0</MinSize></member>"
    groups = f"<AutoScalingGroups>{bad}{good}</AutoScalingGroups>"
    wire.says(
        DESCRIBE,
        f"<{DESCRIBE}Response><{DESCRIBE}Result>{groups}</{DESCRIBE}Result></{DESCRIBE}Response>",
    )
    async with opened("0:4:good", "0:4:bad") as provider:
        assert [one.id for one in await provider.groups()] == ["good"]
        (problem,) = await provider.problems()
        assert (problem.group, "cannot be read" in problem.text) == ("bad", True)


async def test_pages_without_end_come_to_an_end(
    account: Account, opened: Opened, wire: Wire
) -> None:
    count = [0]

    async def endless(_: dict[str, str]) -> web.Response:
        count[0] += 1
        token = f"<NextToken>{count[0]}</NextToken>"
        body = f"<{DESCRIBE}Response><{DESCRIBE}Result>{token}</{DESCRIBE}Result>"
        return web.Response(text=f"{body}</{DESCRIBE}Response>", content_type="text/xml")

    wire.troubles[DESCRIBE] = endless
    with pytest.raises(ProviderUnavailableError, match=r"more than 1000 pages|did not answer"):
        async with opened("0:4:workers"):
            pass
    assert count[0] <= 1001


async def test_a_group_that_vanishes_is_gone_in_the_next_round(
    account: Account, opened: Opened
) -> None:
    account.group(size=1)
    account.group("other", size=1)
    async with opened("0:4:workers", "0:4:other") as provider:
        account.delete()
        with pytest.raises(NodeGroupNotFoundError):
            await provider.increase("workers", 1)
        await opened.later(provider)
        assert [one.id for one in await provider.groups()] == ["other"]
        (problem,) = await provider.problems()
        assert problem.group == "workers"
        with pytest.raises(NodeGroupNotFoundError, match="there are: other"):
            await provider.instances("workers")


async def test_activities_that_cannot_be_read_leave_hope(
    account: Account, opened: Opened, wire: Wire
) -> None:
    account.group(size=0)
    async with opened("0:4:workers") as provider:
        wire.fails("DescribeScalingActivities", "AccessDenied", 403)
        await provider.increase("workers", 1)
        assert [one.error for one in await provider.instances("workers")] == [None]


async def test_no_credential_is_ever_told(
    account: Account, opened: Opened, wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    account.group(size=1)
    quoted = "The canonical string was AKIASECRETKEYID very/secret"

    async def quotes(_: dict[str, str]) -> web.Response:
        return refusal("SignatureDoesNotMatch", 403, quoted)

    caplog.set_level(logging.DEBUG)
    async with opened("0:4:workers") as provider:
        await provider.increase("workers", 1)
        wire.troubles["*"] = quotes
        with pytest.raises(RefusedError) as told:
            await opened.later(provider)
    assert str(told.value) == "AWS: SignatureDoesNotMatch"
    for secret in ("AKIASECRETKEYID", "very/secret", "Signature="):
        assert secret not in caplog.text


async def test_without_boto3_it_is_said_what_to_install() -> None:
    code = """
import asyncio, sys
sys.modules["boto3"] = sys.modules["boto3.session"] = None
from bayplan.autoscaler.providers import ProviderOptionError
from bayplan.autoscaler.providers.aws.sdk import new_session
try:
    new_session()
except ProviderOptionError as error:
    print(error)
"""
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "install bayplan[aws]" in done.stdout


async def test_aws_is_imported_only_by_those_who_use_it() -> None:
    code = "import bayplan.autoscaler.providers.aws.provider, sys; print('boto3' in sys.modules)"
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
