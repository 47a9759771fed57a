"""NodeGroups of the cluster: followed, laid over the cloud, and told what is wrong with them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bayplan.autoscaler.providers import ProviderOptionError, ProviderOptions
from bayplan.autoscaler.providers.declared.sources import NODE_GROUPS
from bayplan.autoscaler.providers.registry import open_provider
from bayplan.client import Client, Untyped, merge
from bayplan.client.errors import InvalidError
from bayplan.nodegroups import Provider
from bayplan.nodegroups.externalgrpc.server import ListenAddresses, serve
from tests.admission.manifests import CRDS, documents
from tests.autoscaler.providers.conditions import until
from tests.autoscaler.providers.declared.test_overlay import limits
from tests.client.conftest import access, client
from tests.embedded.cloud.clouds import DISK, FILES, SimulatedCloud

__all__ = ["access", "client"]


@pytest.fixture
async def kinds(client: Client) -> Client:
    """A client of a server that knows NodeGroups."""
    for one in documents(CRDS / "nodegroups.yaml"):
        await client.create(one)
    return client


@asynccontextmanager
async def opened(
    client: Client, folder: Path, file: str = "", *, writes: bool = True
) -> AsyncIterator[Provider]:
    """The simulated cloud over its socket, with whatever is declared."""
    simulated, socket = SimulatedCloud(), folder / "cloud.sock"
    declared = folder / "groups.yaml"
    declared.write_text(file)
    options = ProviderOptions("simulated", socket, node_groups=declared if file else None)
    async with (
        serve(simulated.provider, ListenAddresses(socket=socket)),
        open_provider(options, client, writes=writes) as provider,
    ):
        await provider.refresh()
        yield provider


def group(name: str, **spec: object) -> Untyped:
    return {"metadata": {"name": name}, "spec": spec}


async def status(client: Client, name: str) -> Any:
    return (await client.get(NODE_GROUPS, name)).get("status")


async def test_a_nodegroup_says_the_limits_of_a_cloud_that_cannot(
    kinds: Client, tmp_path: Path
) -> None:
    await kinds.create(
        group("shop", id="workers", csiDrivers={DISK: 3, FILES: "none"}), NODE_GROUPS
    )
    async with opened(kinds, tmp_path) as provider:
        assert limits(await provider.template("workers")) == {DISK: 3, FILES: None}
        change = merge({"spec": {"csiDrivers": {DISK: 5}}})
        await kinds.patch(NODE_GROUPS, "shop", change=change)

        async def changed() -> bool:
            return limits(await provider.template("workers")) == {DISK: 5, FILES: None}

        await until(changed)
        await kinds.delete(NODE_GROUPS, "shop")

        async def gone() -> bool:
            return limits(await provider.template("workers")) == {DISK: 8, FILES: None}

        await until(gone)


async def test_a_limit_that_cannot_be_read_is_in_the_status_and_never_endless(
    kinds: Client, tmp_path: Path
) -> None:
    bad = group("workers", csiDrivers={DISK: "many", FILES: 2}, max=3)
    await kinds.create(bad, NODE_GROUPS)
    async with opened(kinds, tmp_path) as provider:
        assert limits(await provider.template("workers")) == {FILES: 2}
        (problem,) = await provider.problems()
        assert problem.text.startswith(f"csiDrivers.{DISK}: 'many': the limit must be")
        assert problem.about is not None
        assert (problem.about.kind, problem.about.name) == ("NodeGroup", "workers")
        said = await status(kinds, "workers")
        assert said["problems"] == [problem.text]
        assert said["observedGeneration"] == 1
        (condition,) = said["conditions"]
        assert (condition["status"], condition["reason"]) == ("False", "HasProblems")
        change = merge({"spec": {"csiDrivers": {DISK: 7}}})
        await kinds.patch(NODE_GROUPS, "workers", change=change)

        async def accepted() -> bool:
            await provider.refresh()
            found = await status(kinds, "workers")
            return bool(found["conditions"][0]["status"] == "True" and not found["problems"])

        await until(accepted)
        assert limits(await provider.template("workers")) == {DISK: 7, FILES: 2}
        assert await provider.problems() == []


async def test_a_template_with_a_part_that_cannot_be_read_is_not_used(
    kinds: Client, tmp_path: Path
) -> None:
    taints = [{"key": "a b", "effect": "NoSchedule"}]
    spec = {"labels": {"team": "ops"}, "taints": taints}
    await kinds.create(group("workers", template=spec), NODE_GROUPS)
    async with opened(kinds, tmp_path) as provider:
        node = (await provider.template("workers")).node
        assert node.metadata.labels["team"] == "shop"
        (problem,) = await provider.problems()
        assert problem.text.startswith("template.taints[0].a b")


async def test_who_declares_a_group_second_is_told(kinds: Client, tmp_path: Path) -> None:
    await kinds.create(group("b", id="workers", max=2), NODE_GROUPS)
    await kinds.create(group("a", id="workers", max=3), NODE_GROUPS)
    await kinds.create(group("gpus", max=1), NODE_GROUPS)
    async with opened(kinds, tmp_path, "nodeGroups: [{name: gpus, max: 2}]") as provider:
        assert {one.id: one.max_size for one in await provider.groups()} == {
            "workers": 3,
            "gpus": 2,
        }
        said = {one.about.name: one.text for one in await provider.problems() if one.about}
        assert said == {
            "b": "already declared by NodeGroup a; this declaration is ignored",
            "gpus": "already declared by a file; this declaration is ignored",
        }
        assert (await status(kinds, "a"))["problems"] == []


async def test_a_status_stays_as_it_is_and_is_not_written_in_a_dry_run(
    kinds: Client, tmp_path: Path
) -> None:
    await kinds.create(group("workers"), NODE_GROUPS)
    (tmp_path / "dry").mkdir()
    async with opened(kinds, tmp_path / "dry", writes=False):
        assert await status(kinds, "workers") is None
    async with opened(kinds, tmp_path) as provider:
        first = await status(kinds, "workers")
        for _ in range(3):
            await provider.refresh()
        assert await status(kinds, "workers") == first


async def test_the_server_refuses_what_the_schema_knows_to_be_wrong(kinds: Client) -> None:
    for wrong in ({"max": -1}, {"price": "dear"}, {"template": {"taints": [{"key": "a"}]}}):
        with pytest.raises(InvalidError):
            await kinds.create(group("x", **wrong), NODE_GROUPS)


async def test_without_the_kind_and_a_file_the_cloud_is_as_it_is(
    client: Client, tmp_path: Path
) -> None:
    async with opened(client, tmp_path) as provider:
        assert limits(await provider.template("workers")) == {DISK: 8, FILES: None}
        assert await provider.problems() == ()
    (tmp_path / "file").mkdir()
    file = f"nodeGroups: [{{name: workers, csiDrivers: {{{DISK}: 1}}}}]"
    async with opened(client, tmp_path / "file", file) as provider:
        assert limits(await provider.template("workers")) == {DISK: 1, FILES: None}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (ProviderOptions(), "--cloud-provider: there is no cloud provider ''"),
        (ProviderOptions("external-grpc"), "did you mean 'externalgrpc'"),
        (ProviderOptions("externalgrpc"), "--cloud-config: externalgrpc needs a file"),
        (ProviderOptions("simulated"), "export BAYPLAN_CLOUD"),
    ],
)
async def test_options_that_make_no_sense_are_refused(
    client: Client, options: ProviderOptions, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BAYPLAN_CLOUD", raising=False)
    with pytest.raises(ProviderOptionError, match=said):
        async with open_provider(options, client):
            pass
