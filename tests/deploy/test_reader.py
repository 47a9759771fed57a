"""`bayplan-reader`: what whoever only asks may do, on a simulated cluster with RBAC on."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bayplan.client import Client, Informers, connect
from bayplan.deploy.roles import FOLLOW, READER
from bayplan.kube.nodes import Node
from bayplan.observe.permissions import rules_for
from tests.accounts import restricted, write_token
from tests.cli.commands import command
from tests.deploy.manifests import made
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


ROOT = Path(__file__).parents[2]
CLUSTER = """
seed: 1
csiDrivers: [{name: disk.csi.example.com}]
instanceTypes: [{name: a, cpu: 4, memory: 16Gi}]
nodeGroups:
  - name: g
    instanceType: a
    count: 1
    start: 0.2
    drivers: [{name: disk.csi.example.com, limit: 8}]
"""
QUESTIONS = (
    ("volumes", "-o", "json"),
    ("explain", "--all-pending", "-o", "json"),
    ("plan", "--groups", str(ROOT / "examples" / "groups.yaml"), "-o", "json"),
    ("check", "-o", "json"),
)


def test_it_may_list_and_watch_what_commands_read_and_nothing_else() -> None:
    """Lists are for questions; the page and recordings follow what changes."""
    granted = {(rule.group, resource) for rule in READER.cluster for resource in rule.resources}
    needed = {
        (group, resource)
        for rule in rules_for()
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert granted == needed
    assert {rule.verbs for rule in READER.cluster} == {FOLLOW}
    assert {verb for rule in rules_for() for verb in rule["verbs"]} == {"list"}


async def test_a_reader_gets_every_answer_and_changes_nothing(tmp_path: Path) -> None:
    async with _cluster(tmp_path) as admin:
        for one in (*made("reader"), _binding()):
            await admin.create(one)
        await _until_there_is_a_node(admin)
        path = restricted(tmp_path / "kubeconfig")
        for words in QUESTIONS:
            out, err = await _asked(path, *words)
            assert json.loads(out), words
            assert "forbidden" not in err
            assert not json.loads(out).get("incomplete")


async def test_who_has_no_role_is_told_so_in_a_line(tmp_path: Path) -> None:
    async with _cluster(tmp_path):
        path = restricted(tmp_path / "kubeconfig")
        out, err = await _asked(path, "volumes", "-o", "json", wanted=2)
        assert not out
        assert "Traceback" not in err
        assert len(err.strip().splitlines()) == 1


@asynccontextmanager
async def _cluster(folder: Path) -> AsyncIterator[Client]:
    """`bayplan up` with RBAC on, and one more user."""
    tokens, path, file = write_token(folder, "reader"), folder / "kubeconfig", folder / "c.yaml"
    file.write_text(CLUSTER)
    options = ("--authorization", "rbac", "--tokens", str(tokens), "--kubeconfig", str(path))
    async with command(folder, "up", "-f", str(file), "--with", "scheduler", *options) as running:
        assert (await running.line()).startswith("serving")
        async with connect(path) as admin:
            yield admin


async def _until_there_is_a_node(client: Client) -> None:
    there = asyncio.Event()
    async with Informers(client) as informers, asyncio.timeout(PATIENCE):
        informers.of(Node).on_change(lambda _: there.set())
        await there.wait()


async def _asked(kubeconfig: Path, *words: str, wanted: int | None = None) -> tuple[str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bayplan", *words),
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    code = process.returncode
    assert code in ((0, 1) if wanted is None else (wanted,)), err.decode()
    return out.decode(), err.decode()


def _binding() -> dict[str, object]:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "readers"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "bayplan-reader"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "reader"}],
    }
