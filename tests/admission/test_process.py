"""The webhook as a process of its own, over HTTPS, before a real API server and a real kubectl."""

from __future__ import annotations

import asyncio
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bayplan.admission.certificates import DEFAULT_LIFETIMES, renewed
from bayplan.admission.configurations import MUTATING, VALIDATING
from bayplan.base.clock import WallClock
from bayplan.cli.main import run
from bayplan.client import Client, Untyped, connect
from bayplan.client.errors import InvalidError, ServerFaultError
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from tests.admission.manifests import install_kinds
from tests.admission.reviews import GATE
from tests.admission.test_kinds import QUEUE, QUEUES
from tests.admission.test_registration import gates_of, hooks, opted_in
from tests.kubectl import needs_kubectl, runner

pytestmark = pytest.mark.whole


DIRECT = ("--url", "https://127.0.0.1:0")
NAME = "bayplan-webhook"


class Webhook:
    """A running `bayplan webhook`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []

    async def said(self, text: str) -> str:
        """Wait until it says that, and give the whole line."""
        assert self.process.stderr is not None
        while True:
            line = (await self.process.stderr.readline()).decode()
            assert line, self.lines
            self.lines.append(line)
            if text in line:
                return line

    async def stop(self) -> int:
        """End it in order."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        assert self.process.stderr is not None
        self.lines.append((await self.process.stderr.read()).decode())
        return await self.process.wait()


@asynccontextmanager
async def webhook(kubeconfig: Path, *arguments: str) -> AsyncIterator[Webhook]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bayplan", "webhook", "--kubeconfig", str(kubeconfig)),
        *arguments,
        stderr=asyncio.subprocess.PIPE,
    )
    running = Webhook(process)
    try:
        yield running
    finally:
        await running.stop()


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[tuple[Path, Client]]:
    path = folder / "kubeconfig"
    async with ApiServer(ServerConfig(kubeconfig=path)), connect(path) as client:
        await install_kinds(client)
        yield path, client


async def test_it_gates_refuses_and_ends_in_order(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (path, client):
        async with webhook(path, *DIRECT) as running:
            await running.said("serving a certificate")
            assert await gates_of(client, "a") == [GATE]
            bad = opted_in("b", {GATE: "yes"})
            with pytest.raises(InvalidError, match="must be true or false"):
                await client.create(bad)
            queue: Untyped = {"metadata": {"name": "q"}, "spec": {"parent": "nobody"}}
            with pytest.raises(InvalidError, match="which does not exist"):
                await client.create(queue, QUEUES)
            assert await running.stop() == 0
        assert "PRIVATE" not in "".join(running.lines)
        with pytest.raises(ServerFaultError, match="failed calling webhook"):
            await client.create(opted_in("c"))


async def test_with_the_policy_ignore_what_cannot_be_reviewed_is_let_in(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (path, client):
        async with webhook(path, *DIRECT, "--failure-policy", "Ignore") as running:
            await running.said("serving a certificate")
            assert await gates_of(client, "a") == [GATE]
        assert await gates_of(client, "b") == []
        async with webhook(path, *DIRECT, "--failure-policy", "Fail") as running:
            await running.said("updated ValidatingWebhookConfiguration")
        policies = {hook["failurePolicy"] for hook in hooks(await client.get(MUTATING, NAME))}
        assert policies == {"Fail"}


async def test_replicas_answer_side_by_side_and_a_restart_finds_its_certificate(
    tmp_path: Path,
) -> None:
    async with cluster(tmp_path) as (path, client):
        async with webhook(path, *DIRECT) as first, webhook(path, *DIRECT) as second:
            ends = {
                (await one.said("serving a certificate")).split("serving")[1]
                for one in (first, second)
            }
            assert len(ends) == 1
        async with webhook(path, *DIRECT) as again:
            assert (await again.said("serving a certificate")).split("serving")[1] in ends
            assert "created certificates" not in "".join(again.lines)
        assert len(hooks(await client.get(VALIDATING, NAME))) == 5


async def test_a_certificate_from_files_is_read_again_when_it_changes(tmp_path: Path) -> None:
    files = (tmp_path / "tls.crt", tmp_path / "tls.key")
    given = ("--tls-cert-file", str(files[0]), "--tls-private-key-file", str(files[1]))
    now = WallClock().now()
    first, second = (renewed(None, ("127.0.0.1",), now, DEFAULT_LIFETIMES) for _ in range(2))
    _write(files, first.serving.certificate, first.serving.key)
    options = (*DIRECT, *given, "--check-interval", "200ms")
    async with cluster(tmp_path) as (path, client), webhook(path, *options) as running:
        where = (await running.said("serving admission reviews at")).split(" at ")[1].strip()
        await running.said("serving a certificate")
        (hook,) = hooks(await client.get(MUTATING, NAME))
        assert "caBundle" not in hook["clientConfig"]
        assert await _greets(where, first.trusted)
        _write(files, second.serving.certificate, first.serving.key)
        await running.said("updating certificates and configurations failed")
        assert await _greets(where, first.trusted)
        _write(files, second.serving.certificate, second.serving.key)
        await running.said("serving a certificate")
        assert await _greets(where, second.trusted)
        assert not await _greets(where, first.trusted)


def _write(files: tuple[Path, Path], certificate: bytes, key: bytes) -> None:
    files[0].write_bytes(certificate)
    files[1].write_bytes(key)


async def _greets(where: str, trusted: bytes) -> bool:
    """Whether whoever trusts those authorities gets an answer."""
    context = ssl.create_default_context(cadata=trusted.decode())
    async with aiohttp.ClientSession() as session:
        try:
            async with session.get(f"{where}/pods/mutate", ssl=context) as answer:
                return answer.status == 405
        except aiohttp.ClientConnectorCertificateError:
            return False


async def test_it_says_whether_it_is_ready(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (path, _), webhook(path, *DIRECT) as running:
        where = (await running.said("serving health and metrics at")).split(" at ")[1].strip()
        await running.said("webhook ready")
        async with aiohttp.ClientSession(where) as session:
            found: dict[str, Any] = {}
            for page in ("/healthz", "/livez", "/readyz", "/metrics"):
                async with session.get(page) as answer:
                    found[page] = (answer.status, await answer.text())
    assert {status for status, _ in found.values()} == {200}
    assert "bayplan_webhook_certificate_expiry_seconds" in found["/metrics"][1]


async def test_a_slow_or_broken_client_harms_nobody(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (path, client), webhook(path, *DIRECT) as running:
        where = (await running.said("serving admission reviews at")).split("https://")[1].strip()
        await running.said("serving a certificate")
        host, port = where.split(":")
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        stuck = [await asyncio.open_connection(host, int(port), ssl=context) for _ in range(20)]
        for _, writer in stuck:
            writer.write(b"POST /pods/mutate HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n{")
            await writer.drain()
        assert await gates_of(client, "a") == [GATE]
        for _, writer in stuck:
            writer.close()


@needs_kubectl
async def test_kubectl_shows_refusals_and_warnings(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (path, client), webhook(path, *DIRECT) as running:
        await running.said("serving a certificate")
        kubectl = runner(path, tmp_path)
        await kubectl("apply", "-f", "-", stdin=QUEUE)
        await asyncio.wait_for(_known(client, "research"), 10)
        child = QUEUE.replace("research", "small").replace("parent: root", "parent: research")
        large = child.replace("cpu: 40", "cpu: 41")
        refused = await kubectl("apply", "-f", "-", stdin=large, ok=False)
        assert "41 is more than the 40 of queue research above it" in refused.err
        await kubectl("create", "-f", "-", stdin=QUEUE.replace("research", "default"))
        refused = await kubectl("delete", "queue", "default", ok=False)
        assert "queue default cannot be deleted" in refused.err


async def _known(client: Client, name: str) -> None:
    """Wait until the webhook has heard of a queue, and lets others stand below it."""
    probe: Untyped = {"metadata": {"name": "probe"}, "spec": {"parent": name}}
    while True:
        with suppress(InvalidError):
            await client.create(probe, QUEUES, dry_run=True)
            return


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--service", "nowhere"), "--service nowhere: must be NAMESPACE/NAME"),
        (("--url", "http://a"), "must be https://HOST"),
        (("--url", "https://a:b"), "--url https://a:b"),
        (("--tls-cert-file", "/nonexistent"), "must be given together"),
        (("--scheduler-name", "A B"), "not a valid name"),
        (("--listen", "nowhere"), "must be ADDRESS:PORT"),
        (("--feature-gates", "No=true"), "unknown feature gate"),
        (("--check-interval", "0s"), "must be 0.1s or more"),
    ],
)
def test_bad_options_are_told(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["webhook", *arguments]) == 2
    assert said in capsys.readouterr().err
