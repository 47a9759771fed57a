"""Clusters that cannot be asked: one clear line that says what to do next, and exit code 2."""

from __future__ import annotations

import asyncio
import base64
import socket
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from bayplan.cli.main import run
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from tests.client.scripted import Handler, Scripted, raw, refusal
from tests.client.tls_servers import TlsServer

pytestmark = pytest.mark.whole


Captured = pytest.CaptureFixture[str]
COMMANDS = (
    ("explain", "--all-pending"),
    ("explain", "p"),
    ("volumes",),
    ("plan",),
    ("queues",),
    ("check",),
    ("dump",),
)


def kubeconfig(folder: Path, server: str, **cluster: str) -> Path:
    path = folder / "config"
    said = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": {"token": "a-token-that-nobody-must-see"}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(yaml.safe_dump(said))
    return path


async def refused(capsys: Captured, *words: str) -> str:
    """The one line that a command says that has no answer."""
    code = await asyncio.to_thread(run, list(words))
    said = capsys.readouterr()
    assert code == 2
    assert not said.out
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert "Traceback" not in said.err
    assert "a-token-that-nobody-must-see" not in said.err
    return said.err


async def hang(_: web.BaseRequest) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
async def test_a_server_that_is_not_there(
    command: tuple[str, ...], tmp_path: Path, capsys: Captured
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # nobody listens
        server = f"http://127.0.0.1:{free.getsockname()[1]}"
        path = kubeconfig(tmp_path, server)
        said = await refused(capsys, *command, "--kubeconfig", str(path))
    assert server in said
    assert "no connection" in said
    assert "is the cluster up" in said


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
async def test_no_kubeconfig_at_all(
    command: tuple[str, ...], tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    said = await refused(capsys, *command)
    assert "no kubeconfig: set KUBECONFIG, or write ~/.kube/config" in said
    assert "give a dump with -f FILE" in said


async def test_a_dump_is_not_offered_to_a_command_that_takes_none(
    tmp_path: Path, capsys: Captured
) -> None:
    said = await refused(capsys, "record", "--kubeconfig", str(tmp_path / "none"))
    assert "no kubeconfig at" in said
    assert "-f FILE" not in said


async def test_a_context_that_is_not_there(tmp_path: Path, capsys: Captured) -> None:
    path = kubeconfig(tmp_path, "http://127.0.0.1:1")
    said = await refused(capsys, "volumes", "--kubeconfig", str(path), "--context", "hera")
    assert "no context named 'hera'; did you mean 'here'?" in said
    said = await refused(capsys, "explain", "p", "--kubeconfig", str(path), "--context", "x")
    assert "there are: here" in said


async def test_a_kubeconfig_that_is_none(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "config"
    path.write_text("a: [b")
    assert "not YAML" in await refused(capsys, "volumes", "--kubeconfig", str(path))
    gone = str(tmp_path / "gone")
    assert f"no kubeconfig at {gone}" in await refused(capsys, "plan", "--kubeconfig", gone)


NOT_KUBERNETES: dict[str, tuple[Handler, str]] = {
    "a web page": (raw(b"<html>welcome</html>", content_type="text/html"), "does not look like"),
    "another JSON": (raw(b'["no", "status"]'), "does not look like"),
    "not found": (raw(b"<html>", 404, "text/html"), "does not look like"),
    "a redirect": (raw(b"", 302), "HTTP 302"),
    "an expired token": (refusal(401, "Unauthorized", "Unauthorized"), "log in again"),
    "a broken server": (refusal(500, "InternalError", "out of order"), "out of order"),
}


@pytest.mark.parametrize("what", NOT_KUBERNETES)
async def test_a_server_that_is_no_use(what: str, tmp_path: Path, capsys: Captured) -> None:
    handler, expected = NOT_KUBERNETES[what]
    async with Scripted(handler) as server:
        path = kubeconfig(tmp_path, server.access.server)
        for command in (("explain", "--all-pending"), ("dump",)):
            said = await refused(capsys, *command, "--kubeconfig", str(path))
            assert server.access.server in said
            assert expected in said


HELLO = raw(b'{"gitVersion": "v1.36.4"}')
ENDLESS = raw(b'{"kind": "PodList", "metadata": {"continue": "more"}, "items": []}')


@pytest.mark.parametrize("command", [("check",), ("dump",)], ids=" ".join)
@pytest.mark.parametrize(
    ("answer", "expected"),
    [(raw(b"no such page", 404, "text/plain"), "does not look like"), (ENDLESS, "has no end")],
    ids=["without pods", "without end"],
)
async def test_a_server_that_has_a_version_and_no_list_of_pods(
    command: tuple[str, ...], answer: Handler, expected: str, tmp_path: Path, capsys: Captured
) -> None:
    async def polite(request: web.BaseRequest) -> web.StreamResponse:
        return await (HELLO if request.path == "/version" else answer)(request)

    async with Scripted(polite) as server:
        path = kubeconfig(tmp_path, server.access.server)
        said = await refused(capsys, *command, "--kubeconfig", str(path))
    assert expected in said


async def test_a_server_that_hangs(tmp_path: Path, capsys: Captured) -> None:
    async with Scripted(hang) as server:
        path = kubeconfig(tmp_path, server.access.server)
        words = ("volumes", "--kubeconfig", str(path), "--request-timeout", "300ms")
        said = await refused(capsys, *words)
    assert "no answer within 0.3 seconds" in said
    assert "raise --request-timeout to wait longer" in said
    assert "is not a duration" in await refused(capsys, "volumes", "--request-timeout", "soon")


async def test_a_server_that_hangs_after_it_has_said_hello(
    tmp_path: Path, capsys: Captured
) -> None:
    async with Scripted(HELLO, hang) as server:
        path = kubeconfig(tmp_path, server.access.server)
        words = ("volumes", "--kubeconfig", str(path), "--request-timeout", "200ms")
        said = await refused(capsys, *words)
    assert "GET /api/v1/pods: no answer in time" in said


async def test_a_certificate_of_another_authority(tmp_path: Path, capsys: Captured) -> None:
    async with TlsServer("127.0.0.1") as server, TlsServer("127.0.0.1") as other:
        trusted = base64.b64encode(other.authority_pem).decode()
        path = kubeconfig(
            tmp_path,
            f"https://127.0.0.1:{server.port}",
            **{"certificate-authority-data": trusted},
        )
        said = await refused(capsys, "explain", "--all-pending", "--kubeconfig", str(path))
    assert "certificate is not to be trusted" in said
    assert "certificate-authority-data" in said


async def test_a_token_that_the_embedded_server_does_not_know(
    tmp_path: Path, capsys: Captured
) -> None:
    real = tmp_path / "real"
    async with ApiServer(ServerConfig(kubeconfig=real, authorization="rbac")):
        known = yaml.safe_load(real.read_text())["clusters"][0]["cluster"]
        server = known.pop("server")
        path = kubeconfig(tmp_path, server, **known)
        said = await refused(capsys, "plan", "--kubeconfig", str(path))
    assert "log in again" in said
