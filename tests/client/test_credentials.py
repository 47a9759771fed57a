"""Tokens that rotate, plugins that run, certificates that prove, and secrets that stay secret."""

from __future__ import annotations

import base64
import json
import logging
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from bayplan.client import Access, Client, load_access
from bayplan.client.config.access import StaticHeader, TlsSettings, TokenFile
from bayplan.client.config.kubeconfig import ExecSettings
from bayplan.client.config.plugins import ExecPlugin
from bayplan.client.errors import ApiError, ConfigError, UnauthorizedError, UntrustedError
from bayplan.kube.nodes import Node
from tests.client import scripted
from tests.client.scripted import Scripted, refusal
from tests.client.test_kubeconfig import SECRET, kubeconfig
from tests.client.tls_servers import TlsServer, TunnelProxy
from tests.clocks import VirtualClock

NODE = scripted.json({"metadata": {"name": "n"}})
V1 = "client.authentication.k8s.io/v1"


async def whoami(access: Access) -> dict[str, object]:
    async with Client(access) as client:
        answer = json.loads(await client.raw("/whoami"))
    assert isinstance(answer, dict)
    return answer


def authorizations(server: Scripted) -> list[str | None]:
    return [request.headers.get("Authorization") for request in server.requests]


async def test_a_rotated_token_is_used_from_the_next_request_on(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("first\n")
    async with Scripted(NODE) as server:
        access = replace(server.access, credentials=TokenFile(path))
        async with Client(access) as client:
            await client.get(Node, "n")
            path.write_text("second-token\n")
            await client.get(Node, "n")
            path.unlink()  # as it is for a moment while it is replaced
            await client.get(Node, "n")
    assert authorizations(server) == ["Bearer first", *["Bearer second-token"] * 2]


async def test_a_user_and_password_are_sent_as_such(tmp_path: Path) -> None:
    async with Scripted(NODE) as server:
        user = {"username": "jane", "password": "pw"}
        path = kubeconfig(tmp_path / "c", user=user, cluster={"server": server.access.server})
        async with Client(load_access(path)) as client:
            await client.get(Node, "n")
    assert authorizations(server) == ["Basic " + base64.b64encode(b"jane:pw").decode()]


async def test_acting_for_somebody_else_says_so(tmp_path: Path) -> None:
    async with TlsServer("127.0.0.1") as server:
        user = {"token": "t", "as": "jane", "as-groups": ["a", "b"]}
        cluster = {"server": f"https://127.0.0.1:{server.port}", "insecure-skip-tls-verify": True}
        access = load_access(kubeconfig(tmp_path / "c", user=user, cluster=cluster))
        assert (await whoami(access))["impersonated"] == ["a", "b"]


@pytest.mark.parametrize("inline", [True, False])
async def test_a_client_certificate_proves_who_we_are(tmp_path: Path, inline: bool) -> None:
    async with TlsServer("127.0.0.1", demand_certificate=True) as server:
        pair = server.user("jane")
        parts = {"client-certificate": pair.certificate, "client-key": pair.key}
        user: dict[str, str] = {}
        for name, pem in parts.items():
            (tmp_path / name).write_bytes(pem)
            user |= {f"{name}-data": base64.b64encode(pem).decode()} if inline else {name: name}
        (tmp_path / "ca").write_bytes(server.authority_pem)
        cluster = {"server": f"https://127.0.0.1:{server.port}", "certificate-authority": "ca"}
        access = load_access(kubeconfig(tmp_path / "config", user=user, cluster=cluster))
        assert (await whoami(access))["user"] == "jane"


async def test_a_renewed_certificate_file_is_used_without_a_restart(tmp_path: Path) -> None:
    async with TlsServer("127.0.0.1", demand_certificate=True) as server:
        files = (tmp_path / "crt", tmp_path / "key")
        tls = TlsSettings(server.authority_pem, *files)
        seen = []
        async with Client(Access(f"https://127.0.0.1:{server.port}", tls)) as client:
            for user in ("jane", "june"):
                pair = server.user(user)
                files[0].write_bytes(pair.certificate)
                files[1].write_bytes(pair.key)
                seen.append(json.loads(await client.raw("/whoami"))["user"])
    assert seen == ["jane", "june"]


async def test_a_server_of_another_authority_is_not_trusted_nor_tried_again() -> None:
    async with TlsServer("127.0.0.1") as server, TlsServer("127.0.0.1") as other:
        access = Access(
            f"https://127.0.0.1:{server.port}", TlsSettings(authority=other.authority_pem)
        )
        with pytest.raises(UntrustedError, match="not to be trusted"):
            await whoami(access)


async def test_a_server_is_known_by_the_name_we_were_told_to_expect() -> None:
    async with TlsServer("api.internal.example") as server:
        where = f"https://127.0.0.1:{server.port}"
        tls = TlsSettings(authority=server.authority_pem)
        with pytest.raises(UntrustedError):
            await whoami(Access(where, tls))
        await whoami(Access(where, replace(tls, server_name="api.internal.example")))
        await whoami(Access(where, TlsSettings(verify=False)))


async def test_a_proxy_is_gone_through_and_sees_nothing(tmp_path: Path) -> None:
    async with TlsServer("api.internal.example") as server, TunnelProxy() as proxy:
        (tmp_path / "ca").write_bytes(server.authority_pem)
        cluster = {
            "server": f"https://127.0.0.1:{server.port}",
            "certificate-authority": "ca",
            "tls-server-name": "api.internal.example",
            "proxy-url": proxy.url,
        }
        path = kubeconfig(tmp_path / "config", user={"token": SECRET}, cluster=cluster)
        assert (await whoami(load_access(path)))["authorization"] == f"Bearer {SECRET}"
        assert proxy.tunnels == [f"127.0.0.1:{server.port}"]


def plugin(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path.name


def credential(**status: str) -> str:
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})


def exec_user(command: str, **more: object) -> dict[str, object]:
    return {"exec": {"apiVersion": V1, "command": command, **more}}


async def test_a_plugins_token_is_kept_until_it_runs_out(tmp_path: Path) -> None:
    clock = VirtualClock()
    expiry = "2026-01-01T01:00:00Z"
    answer = credential(token="$TOKEN-$(wc -l < runs | tr -d ' ')", expirationTimestamp=expiry)
    body = f"cd {tmp_path}; echo >> runs; cat <<END\n{answer}\nEND"
    plugin(tmp_path / "give-token", body)
    user = exec_user("./give-token", env=[{"name": "TOKEN", "value": "t"}])
    async with Scripted(NODE) as server:
        path = kubeconfig(tmp_path / "c", user=user, cluster={"server": server.access.server})
        async with Client(load_access(path, clock=clock)) as client:
            await client.get(Node, "n")
            await client.get(Node, "n")
            await clock.advance(3595)
            await client.get(Node, "n")
    assert authorizations(server) == ["Bearer t-1", "Bearer t-1", "Bearer t-2"]


async def test_a_plugin_is_run_again_when_the_server_says_401(tmp_path: Path) -> None:
    answer = credential(token="t-$(wc -l < runs | tr -d ' ')")
    plugin(tmp_path / "p", f"cd {tmp_path}; echo >> runs; cat <<END\n{answer}\nEND")
    async with Scripted(NODE, refusal(401, "Unauthorized"), NODE, refusal(401)) as server:
        cluster = {"server": server.access.server}
        access = load_access(kubeconfig(tmp_path / "c", user=exec_user("./p"), cluster=cluster))
        async with Client(access) as client:
            await client.get(Node, "n")
            await client.get(Node, "n")
            with pytest.raises(UnauthorizedError):
                await client.get(Node, "n")
    assert authorizations(server) == [f"Bearer t-{n}" for n in (1, 1, 2, 2, 3)]


async def test_a_watch_too_gets_a_fresh_credential_once(tmp_path: Path) -> None:
    answer = credential(token="t-$(wc -l < runs | tr -d ' ')")
    plugin(tmp_path / "p", f"cd {tmp_path}; echo >> runs; cat <<END\n{answer}\nEND")
    async with Scripted(refusal(401, "Unauthorized"), scripted.stream()) as server:
        cluster = {"server": server.access.server}
        access = load_access(kubeconfig(tmp_path / "c", user=exec_user("./p"), cluster=cluster))
        async with Client(access) as client, client.watch(Node) as events:
            assert [event async for event in events] == []
    assert authorizations(server) == ["Bearer t-1", "Bearer t-2"]


async def test_a_plugin_may_give_a_certificate(tmp_path: Path) -> None:
    async with TlsServer("127.0.0.1", demand_certificate=True) as server:
        pair = server.user("jane")
        given = credential(
            clientCertificateData=pair.certificate.decode(), clientKeyData=pair.key.decode()
        )
        (tmp_path / "given").write_text(given)
        plugin(tmp_path / "p", f"cat {tmp_path / 'given'}")
        cluster = {
            "server": f"https://127.0.0.1:{server.port}",
            "certificate-authority-data": base64.b64encode(server.authority_pem).decode(),
        }
        path = kubeconfig(tmp_path / "c", user=exec_user("./p"), cluster=cluster)
        assert (await whoami(load_access(path)))["user"] == "jane"


async def test_a_plugin_that_asks_is_told_of_the_cluster(tmp_path: Path) -> None:
    said = tmp_path / "said"
    plugin(
        tmp_path / "p",
        f"echo \"$KUBERNETES_EXEC_INFO\" > {said}; echo '{credential(token='t')}'",
    )
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}
    async with Scripted(NODE) as server:
        cluster = {"server": server.access.server, "extensions": [extension]}
        user = exec_user("./p", provideClusterInfo=True)
        async with Client(
            load_access(kubeconfig(tmp_path / "c", user=user, cluster=cluster))
        ) as client:
            await client.get(Node, "n")
        spec = json.loads(said.read_text())["spec"]
        assert spec["cluster"] == {"server": server.access.server, "config": {"audience": "a"}}
        assert spec["interactive"] is False


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (f"echo {SECRET} >&2; exit 3", "exit status 3"),
        (f"echo {SECRET}", "not an ExecCredential"),
        (f"echo '{credential()}' # {SECRET}", "returned no credential"),
        (f"echo '{credential(clientKeyData=SECRET)}'", "a key alone"),
        (f"echo '{credential(token=SECRET)}' | sed s/v1/v2/", "another version"),
        ("head -c 2000000 /dev/zero", "more than 1048576 bytes"),
    ],
)
async def test_a_plugin_that_fails_is_named_and_not_quoted(
    tmp_path: Path, body: str, complaint: str
) -> None:
    plugin(tmp_path / "p", body)
    settings = ExecSettings(command="./p", api_version=V1)
    with pytest.raises(ConfigError, match=complaint) as caught:
        await ExecPlugin(settings, tmp_path, {}, {"PATH": "/usr/bin:/bin"}).run()
    assert SECRET not in str(caught.value)


async def test_a_plugin_that_hangs_is_ended(tmp_path: Path) -> None:
    plugin(tmp_path / "p", "sleep 1000")
    settings = ExecSettings(command="./p", api_version=V1)
    with pytest.raises(ConfigError, match=r"no output in 0\.05 s"):
        await ExecPlugin(settings, tmp_path, {}, {"PATH": "/usr/bin:/bin"}, timeout=0.05).run()


async def test_a_plugin_that_is_not_there_comes_with_its_hint(tmp_path: Path) -> None:
    settings = ExecSettings(command="no-such", api_version=V1, install_hint="apt install it")
    with pytest.raises(ConfigError, match=r"No such file or directory \(apt install it\)"):
        await ExecPlugin(settings, tmp_path, {}, {"PATH": "/usr/bin:/bin"}).run()


async def test_an_oidc_token_is_used_while_it_is_good(tmp_path: Path) -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"sub": "jane"}).encode()).decode().rstrip("=")
    token = f"e30.{claims}.{SECRET}"
    async with Scripted(NODE) as server:
        for offered, works in ((token, True), (SECRET, False)):
            user = {"auth-provider": {"name": "oidc", "config": {"id-token": offered}}}
            cluster = {"server": server.access.server}
            access = load_access(kubeconfig(tmp_path / "c", user=user, cluster=cluster))
            async with Client(access) as client:
                if works:
                    await client.get(Node, "n")
                    continue
                with pytest.raises(ConfigError, match="oidc: no valid token") as caught:
                    await client.get(Node, "n")
                assert SECRET not in str(caught.value)
    assert authorizations(server) == [f"Bearer {token}"]


async def test_a_token_that_the_server_echoes_is_blotted_out() -> None:
    async with Scripted(refusal(403, "Forbidden", f"not with {SECRET}, no")) as server:
        access = replace(server.access, credentials=StaticHeader.bearer(SECRET))
        async with Client(access) as client:
            with pytest.raises(ApiError, match=r"not with \[redacted\], no") as caught:
                await client.get(Node, "n")
    assert SECRET not in repr(caught.value)


async def test_no_log_holds_a_token(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with Scripted(NODE, scripted.hang_up, refusal(500), NODE) as server:
        access = replace(server.access, credentials=StaticHeader.bearer(SECRET))
        clock = VirtualClock()
        async with Client(access, clock=clock) as client:
            await client.get(Node, "n")
            await clock.run(client.get(Node, "n"))
    assert len(server.requests) == 4
    assert SECRET not in caplog.text
