"""Who a client is: certificates, tokens, impersonation."""

from __future__ import annotations

import ssl
from pathlib import Path

import aiohttp
import pytest

from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.identity import TokenFileError, TokenTable
from bayplan.embedded.apiserver.server import ApiServer
from tests.embedded.apiserver.authorization.grants import grant, rule
from tests.embedded.apiserver.http_client import Http


async def test_a_client_certificate_says_who_somebody_is(
    guarded: ApiServer, tmp_path: Path
) -> None:
    pair = guarded.client_certificate("eve", ("system:masters",))
    path = tmp_path / "client.pem"
    path.write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(cadata=guarded.authority.pair.certificate.decode())
    context.load_cert_chain(path)
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(guarded.url, connector=connector) as session:
        async with session.get("/api/v1/secrets") as response:
            assert response.status == 200
        reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        async with session.post(reviews, json={}) as response:
            info = (await response.json())["status"]["userInfo"]
        wrong = {"Authorization": "Bearer nope"}
        async with session.get("/api/v1/secrets", headers=wrong) as response:
            assert response.status == 401
    assert (info["username"], info["groups"]) == ("eve", ["system:masters", "system:authenticated"])


@pytest.mark.parametrize("line", ["just-a-token", ",user,uid", "token,,uid"])
def test_a_token_file_with_a_bad_line_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text(f"fine,user,1\n{line}\n")
    with pytest.raises(TokenFileError, match=":2: needs at least"):
        TokenTable().load(path)


async def test_credentials_and_identity_survive_a_restart(tmp_path: Path) -> None:
    config = ServerConfig(data=tmp_path / "data.db")
    async with ApiServer(config) as first:
        known = (first.admin_token, first.authority.pair.certificate)
    async with ApiServer(config) as second:
        assert (second.admin_token, second.authority.pair.certificate) == known
    assert (tmp_path / "data.db").stat().st_mode & 0o077 == 0


async def test_the_administrator_can_act_as_somebody_else(admin: Http, ann: Http) -> None:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    as_bob = {"Impersonate-User": "bob", "Impersonate-Group": "dev"}
    who = (await admin("POST", path, {}, as_bob)).body["status"]["userInfo"]
    assert (who["username"], who["groups"]) == ("bob", ["dev", "system:authenticated"])
    secrets = "/api/v1/secrets"
    assert (await admin("GET", secrets, headers=as_bob)).code == 403
    as_admin = {"Impersonate-User": "system:admin", "Impersonate-Group": "system:masters"}
    assert (await ann("GET", secrets, headers=as_admin)).code == 403
    assert (await admin("GET", secrets, headers={"Impersonate-Uid": "5"})).code == 400


async def test_service_accounts_are_impersonated_as_service_accounts(
    admin: Http, ann: Http
) -> None:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    as_robot = {"Impersonate-User": "system:serviceaccount:default:robot"}
    refused = await ann("POST", path, {}, as_robot)
    assert (refused.code, refused.body["details"]["kind"]) == (403, "serviceaccounts")
    impersonate = rule("impersonate", resources="serviceaccounts", resourceNames=["robot"])
    await grant(admin, {"kind": "User", "name": "ann"}, impersonate)
    who = (await ann("POST", path, {}, as_robot)).body["status"]["userInfo"]
    assert who["groups"] == [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ]
    elsewhere = {"Impersonate-User": "system:serviceaccount:kube-system:robot"}
    assert (await ann("POST", path, {}, elsewhere)).code == 403
    users = rule("impersonate", resources="users")
    await grant(admin, {"kind": "User", "name": "ann"}, users, name="users")
    assert (await ann("POST", path, {}, elsewhere)).code == 403


async def test_what_else_is_known_of_a_user_is_impersonated_too(admin: Http) -> None:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    headers = {"Impersonate-User": "bob", "Impersonate-Uid": "7", "Impersonate-Extra-a%2fb": "c"}
    who = (await admin("POST", path, {}, headers)).body["status"]["userInfo"]
    assert (who["uid"], who["extra"]) == ("7", {"a/b": ["c"]})
