"""Compute Engine busy, broken, silent or wrong: nothing is lost, doubled, waited for or leaked."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys

import pytest
from aiohttp import web

from bayplan.autoscaler.providers.gce.sdk import GceTimeouts, error_from
from bayplan.nodegroups import (
    InvalidRequestError,
    NodeGroupError,
    NodeGroupNotFoundError,
    NodeRef,
    ProviderUnavailableError,
    QuotaExceededError,
    RefusedError,
)
from tests.autoscaler.providers.gce.conftest import HASTE, OpenedGce, session_of
from tests.autoscaler.providers.gce.fake_gce import FakeGce
from tests.autoscaler.providers.gce.project import FakeProject

pytestmark = pytest.mark.whole


@pytest.mark.parametrize(
    ("status", "reason"), [(429, "rateLimitExceeded"), (403, "rateLimitExceeded"), (503, "")]
)
async def test_what_compute_engine_is_too_busy_for_is_sent_again(
    project: FakeProject, opened: OpenedGce, gce: FakeGce, status: int, reason: str
) -> None:
    group = project.group(size=1)
    async with opened("0:4:workers") as provider:
        gce.fails("listManagedInstances", status, reason, times=2)
        await opened.later(provider)
        assert await provider.target_size(group.id) == 1
        gce.fails("resize", status, reason, times=3)
        await provider.increase(group.id, 1)
        assert group.size == 2
        gce.fails("deleteInstances", status, reason, times=2)
        gce.fails("getOperation", status, reason, times=2)
        first = group.instances[0].provider_id
        await provider.delete_nodes(group.id, [NodeRef(first)])
        assert group.size == 1


@pytest.mark.parametrize("method", ["resize", "deleteInstances"])
async def test_a_change_whose_answer_is_lost_is_made_once(
    project: FakeProject, opened: OpenedGce, gce: FakeGce, method: str
) -> None:
    group = project.group(size=3)
    async with opened("0:9:workers") as provider:
        gce.loses(method, times=2)
        if method == "resize":
            await provider.increase(group.id, 2)
        else:
            await provider.delete_nodes(group.id, [NodeRef(group.instances[1].provider_id)])
        assert gce.asked.count(method) == 3
        assert len(gce.operations) == 1
        assert group.size == (5 if method == "resize" else 2)


async def test_what_stays_busy_is_given_up_and_nothing_is_forgotten(
    project: FakeProject, opened: OpenedGce, gce: FakeGce
) -> None:
    group = project.group(size=1)
    async with opened("0:4:workers") as provider:
        gce.fails("aggregatedList", 503)
        with pytest.raises(ProviderUnavailableError, match="503"):
            await opened.later(provider)
        assert await provider.target_size(group.id) == 1
        assert len(await provider.instances(group.id)) == 1
        gce.fails("resize", 429, "rateLimitExceeded")
        with pytest.raises(ProviderUnavailableError, match="rateLimitExceeded"):
            await provider.increase(group.id, 1)
        assert await provider.target_size(group.id) == 1
        assert gce.asked.count("resize") == 4


async def test_a_group_that_does_not_answer_keeps_its_state_and_its_error(
    project: FakeProject, opened: OpenedGce, gce: FakeGce
) -> None:
    group, other = project.group(size=1), project.group("other", size=1)
    async with opened(f"0:4:{group.id}", f"0:4:{other.id}") as provider:
        instance = (await provider.instances(group.id))[0].provider_id

        async def broken(request: web.Request) -> web.Response | None:
            busy = request.match_info["name"] == "workers"
            return web.Response(status=500, text="oops") if busy else None

        gce.faults["listManagedInstances"] = broken
        await opened.later(provider)
        assert [one.id for one in await provider.groups()] == [other.id, group.id]
        assert await provider.target_size(other.id) == 1
        with pytest.raises(ProviderUnavailableError, match="500"):
            await provider.instances(group.id)
        with pytest.raises(ProviderUnavailableError):
            await provider.target_size(group.id)
        assert await provider.group_for_node(NodeRef(instance)) is not None
        gce.faults.clear()
        await opened.later(provider)
        assert await provider.target_size(group.id) == 1


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (500, "internalError", ProviderUnavailableError),
        (400, "resourceNotReady", ProviderUnavailableError),
        (409, "resourceInUseByAnotherResource", ProviderUnavailableError),
        (400, "invalid", InvalidRequestError),
        (403, "quotaExceeded", QuotaExceededError),
        (403, "forbidden", RefusedError),
        (412, "conditionNotMet", RefusedError),
        (404, "notFound", NodeGroupNotFoundError),
    ],
)
async def test_refusals_are_what_they_mean(
    project: FakeProject,
    opened: OpenedGce,
    gce: FakeGce,
    status: int,
    reason: str,
    kind: type[NodeGroupError],
) -> None:
    group = project.group(size=1)
    async with opened("0:4:workers") as provider:
        gce.fails("resize", status, reason)
        with pytest.raises(kind, match=reason):
            await provider.increase(group.id, 1)
        assert await provider.target_size(group.id) == group.size == 1


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("QUOTA_EXCEEDED", QuotaExceededError),
        ("RESOURCE_NOT_FOUND", NodeGroupNotFoundError),
        ("INVALID_USAGE", InvalidRequestError),
    ],
)
async def test_an_operation_that_fails_later_is_an_error(
    project: FakeProject, opened: OpenedGce, gce: FakeGce, code: str, kind: type[NodeGroupError]
) -> None:
    group = project.group(size=1)
    gce.polls = 3
    gce.operation_errors = [{"code": code, "message": "in the end"}]
    async with opened("0:4:workers") as provider:
        with pytest.raises(kind, match=f"{code}: in the end"):
            await provider.increase(group.id, 1)
        await provider.refresh()
        assert await provider.target_size(group.id) == 1


async def test_an_operation_that_takes_too_long_is_not_waited_for(
    project: FakeProject, opened: OpenedGce, gce: FakeGce
) -> None:
    group = project.group(size=1)
    gce.polls = 10**6
    async with opened("0:4:workers", limits=GceTimeouts(whole=5.0)) as provider:
        with pytest.raises(ProviderUnavailableError, match="operation-1 is not done in 5s"):
            await provider.increase(group.id, 1)
        gce.operations["operation-1"].polls = 0
        gce.operations["operation-1"].poll()
        await provider.refresh()
        assert await provider.target_size(group.id) == 2


async def test_silence_is_waited_for_only_so_long(
    project: FakeProject, opened: OpenedGce, gce: FakeGce
) -> None:
    group = project.group(size=1)
    async with opened("0:4:workers", limits=HASTE) as provider:
        gce.hangs("resize")
        with pytest.raises(ProviderUnavailableError, match="cannot call Compute Engine: ReadTime"):
            await provider.increase(group.id, 1)
        gce.hangs("aggregatedList")
        with pytest.raises(ProviderUnavailableError):
            await opened.later(provider)
        assert await provider.target_size(group.id) == 1


async def test_a_call_with_all_retries_has_a_limit(
    project: FakeProject, opened: OpenedGce, gce: FakeGce
) -> None:
    project.group(size=1)
    gce.hangs("aggregatedList")
    limits = GceTimeouts(request=10.0, whole=0.2)
    with pytest.raises(ProviderUnavailableError, match=r"did not answer in 0\.2s"):
        async with opened("0:4:workers", limits=limits):
            pass


async def test_a_server_that_is_not_there_is_reported(opened: OpenedGce, gce: FakeGce) -> None:
    gce.host = "127.0.0.1:9"
    opened._session = session_of(gce)
    with pytest.raises(ProviderUnavailableError, match="ConnectionError"):
        async with opened("0:4:workers"):
            pass


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<html>hello</html>",
        "[]",
        "{",
        '{"name": "workers"}',
        '{"targetSize": 3}',
        '{"name": "workers", "targetSize": "many"}',
        '{"name": {"a": 1}, "targetSize": 3}',
    ],
)
async def test_half_an_answer_is_none(
    project: FakeProject, opened: OpenedGce, gce: FakeGce, body: str
) -> None:
    group = project.group(size=1)
    async with opened(f"0:4:{group.id}") as provider:
        gce.says("get", body)
        await opened.later(provider)
        with pytest.raises(ProviderUnavailableError, match="cannot be read"):
            await provider.target_size(group.id)
        with pytest.raises(ProviderUnavailableError):
            await provider.increase(group.id, 1)
    assert group.size == 1


async def test_a_group_that_is_described_badly_spoils_no_other(
    project: FakeProject, opened: OpenedGce
) -> None:
    project.group("pool-bad", size=1, targetSize=None)
    good = project.group("pool-good", size=1)
    async with opened(discovery=("mig:namePrefix=pool-,max=4",)) as provider:
        assert [one.id for one in await provider.groups()] == [good.id]
        (problem,) = await provider.problems()
        assert problem.group.endswith("/pool-bad")
        assert "cannot be read" in problem.text


async def test_pages_without_end_come_to_an_end(opened: OpenedGce, gce: FakeGce) -> None:
    gce.says("aggregatedList", '{"items": {}, "nextPageToken": "again"}')
    with pytest.raises(ProviderUnavailableError, match="more than 1000 pages"):
        async with opened("0:4:workers"):
            pass
    assert gce.asked.count("aggregatedList") == 1000


async def test_a_zone_that_cannot_be_reached_loses_no_group(
    project: FakeProject, opened: OpenedGce, gce: FakeGce
) -> None:
    group = project.group(size=1)
    async with opened("0:4:workers") as provider:
        gce.says("aggregatedList", '{"items": {"zones/z": {"warning": {"code": "UNREACHABLE"}}}}')
        with pytest.raises(ProviderUnavailableError, match="cannot reach zones/z"):
            await opened.later(provider)
        assert [one.id for one in await provider.groups()] == [group.id]


async def test_a_group_that_vanishes_is_gone_in_the_next_loop(
    project: FakeProject, opened: OpenedGce
) -> None:
    group, other = project.group(size=1), project.group("other", size=1)
    async with opened(f"0:4:{group.id}", "0:4:other") as provider:
        project.groups.popitem()
        del project.groups[next(iter(project.groups))]
        with pytest.raises(NodeGroupNotFoundError):
            await provider.increase(group.id, 1)
        await opened.later(provider)
        assert await provider.groups() == []
        problems = await provider.problems()
        assert {one.group for one in problems} == {group.id, "other"}
        assert all("there is no managed instance group" in one.text for one in problems)
        with pytest.raises(NodeGroupNotFoundError, match="there is no node group"):
            await provider.instances(other.id)


SECRET = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ"


@pytest.mark.parametrize(
    "kube_env",
    [
        f"KUBELET_KEY: {SECRET}\nNODE_LABELS: pool=a\n",
        f"KUBELET_KEY: [{SECRET}\nNODE_LABELS: pool=a\n",
        f"- {SECRET}\n",
        f"KUBELET_KEY: a\nKUBELET_KEY: {SECRET}\n",
    ],
)
async def test_the_secrets_of_a_kube_env_reach_no_log_and_no_error(
    project: FakeProject, opened: OpenedGce, caplog: pytest.LogCaptureFixture, kube_env: str
) -> None:
    url = project.template(metadata={"kube-env": kube_env})
    group = project.group(template=url)
    caplog.set_level(logging.DEBUG, "bayplan")
    async with opened("0:4:workers") as provider:
        try:
            text = repr(await provider.template(group.id))
        except NodeGroupError as error:
            text = f"{error!r} {error.__cause__!r} {error.__context__!r}"
        said = "".join(one.text for one in await provider.problems())
    assert SECRET not in caplog.text + text + said + repr(vars(provider))


def test_errors_have_a_kind_and_the_beginning_of_their_message() -> None:
    assert isinstance(error_from(401, "required", "Login Required."), RefusedError)
    assert str(error_from(418, "", "no tea")) == "Compute Engine: 418: no tea"
    assert len(str(error_from(400, "invalid", "x" * 10_000))) < 400


async def run(code: str) -> str:
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout


async def test_without_the_library_the_error_names_the_extra() -> None:
    code = """
import sys
sys.modules["google.cloud.compute_v1"] = None
from bayplan.autoscaler.providers import ProviderOptionError
from bayplan.autoscaler.providers.gce.sdk import new_session
try:
    new_session()
except ProviderOptionError as error:
    print(error)
"""
    assert "install bayplan[gce]" in await run(code)


async def test_without_credentials_the_error_names_the_variable() -> None:
    code = """
import os
os.environ |= {"NO_GCE_CHECK": "true", "HOME": "/nonexistent", "CLOUDSDK_CONFIG": "/nonexistent"}
os.environ.pop("GOOGLE_APPLICATION_CREDENTIALS", None)
from bayplan.autoscaler.providers import ProviderOptionError
from bayplan.autoscaler.providers.gce.sdk import new_session
try:
    new_session()
except ProviderOptionError as error:
    print(error)
"""
    assert "set GOOGLE_APPLICATION_CREDENTIALS" in await run(code)


async def test_the_library_is_imported_only_for_this_cloud() -> None:
    code = "import bayplan.autoscaler.providers.gce.provider, sys; print('google' in sys.modules)"
    assert (await run(code)).strip() == "False"
