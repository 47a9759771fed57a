"""Kubeconfig files as people have them: several, with relative paths, with mistakes."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from bayplan.client import load_access
from bayplan.client.config import from_kubeconfig, from_service_account
from bayplan.client.config.kubeconfig import resolve_context
from bayplan.client.errors import ConfigError

SECRET = "hunter2-hunter2"


def write(path: Path, **parts: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({key.replace("_", "-"): value for key, value in parts.items()}))
    return path


def kubeconfig(path: Path, *, user: object = None, cluster: object = None) -> Path:
    return write(
        path,
        current_context="only",
        contexts=[{"name": "only", "context": {"cluster": "c", "user": "u"}}],
        clusters=[{"name": "c", "cluster": {"server": "https://c.example", **(cluster or {})}}],  # type: ignore[dict-item]
        users=[{"name": "u", "user": user or {}}],
    )


def test_the_first_file_to_name_something_wins(tmp_path: Path) -> None:
    one = write(
        tmp_path / "one" / "config",
        current_context="mine",
        contexts=[{"name": "mine", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
        clusters=[{"name": "c", "cluster": {"server": "https://one.example"}}],
    )
    two = write(
        tmp_path / "two" / "config",
        current_context="other",
        clusters=[{"name": "c", "cluster": {"server": "https://two.example"}}],
        users=[{"name": "u", "user": {"client-certificate": "me.pem", "client-key": "me.key"}}],
    )
    chosen = resolve_context([one, tmp_path / "absent", two])
    assert chosen.cluster.server == "https://one.example"
    assert chosen.namespace == "n"
    assert chosen.user_directory == tmp_path / "two"
    access = from_kubeconfig([one, two])
    assert access.tls.certificate == tmp_path / "two" / "me.pem"


def test_a_context_can_be_asked_for(tmp_path: Path) -> None:
    path = write(
        tmp_path / "config",
        current_context="a",
        contexts=[{"name": n, "context": {"cluster": n}} for n in ("a", "b")],
        clusters=[{"name": n, "cluster": {"server": f"https://{n}.example"}} for n in ("a", "b")],
    )
    assert load_access(path).server == "https://a.example"
    assert load_access(path, context="b").server == "https://b.example"
    with pytest.raises(ConfigError, match="no context named 'c'"):
        load_access(path, context="c")


def test_kubeconfig_is_found_where_kubectl_finds_it(tmp_path: Path) -> None:
    home = kubeconfig(tmp_path / ".kube" / "config", cluster={"server": "https://home.example"})
    named = kubeconfig(tmp_path / "named", cluster={"server": "https://named.example"})
    in_home = {"HOME": str(tmp_path)}
    assert load_access(environment=in_home).server == "https://home.example"
    both = {**in_home, "KUBECONFIG": f"{tmp_path / 'absent'}:{named}"}
    assert load_access(environment=both).server == "https://named.example"
    home.unlink()
    with pytest.raises(ConfigError, match="no kubeconfig"):
        load_access(environment=in_home)
    with pytest.raises(ConfigError, match="no kubeconfig at"):
        load_access(tmp_path / "absent")


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(SECRET)
    (tmp_path / "namespace").write_text("shop\n")
    known = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    access = from_service_account(known, tmp_path)
    assert access.server == "https://[fd00::1]:6443"
    assert access.namespace == "shop"
    assert access.tls.authority == tmp_path / "ca.crt"
    with pytest.raises(ConfigError, match="this is not a pod"):
        from_service_account({}, tmp_path)
    with pytest.raises(ConfigError, match=r"token file .*: No such file"):
        from_service_account(known, tmp_path / "absent")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"users: [{SECRET}: {{", r"line \d: not YAML"),
        (f"- {SECRET}", "Expected `object`, got `array`"),
        (f"users: [{{name: u, user: {{token: [{SECRET}]}}}}]", r"\$.users\[0\].user.token"),
        (f"contexts: {SECRET}", r"\$.contexts"),
        ("", "no current context"),
        ("current-context: gone", "no context named 'gone'"),
    ],
)
def test_a_mistake_is_named_and_never_quoted(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint) as caught:
        load_access(path)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("user", "cluster", "complaint"),
    [
        ({"token": f"two\n{SECRET}"}, {}, "characters that a token cannot have"),
        ({"client-key-data": SECRET + "!"}, {}, "not base64"),
        ({"auth-provider": {"name": "azure"}}, {}, "'azure' is not one of gcp, oidc"),
        ({"exec": {"command": "x", "apiVersion": "v9"}}, {}, "'v9' is not supported"),
        ({"tokenFile": "absent"}, {}, "No such file"),
        ({}, {"server": "ftp://c.example"}, "not an http or https URL"),
        ({}, {"server": "https://c.example:99999"}, "not an http or https URL"),
        ({}, {"server": "https://[::1"}, "not an http or https URL"),
        ({}, {"server": "https://c example"}, "not an http or https URL"),
        ({}, {"server": f"https://u:{SECRET}@c.example"}, "has a user in its URL"),
        ({}, {"proxy-url": f"http://u:{SECRET}@p.example:none"}, "only http and https proxies"),
        ({}, {"proxy-url": f"socks5://u:{SECRET}@p.example"}, "only http and https proxies"),
        (
            {},
            {"insecure-skip-tls-verify": True, "certificate-authority": "ca"},
            "exclude each other",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_sent(
    tmp_path: Path, user: object, cluster: object, complaint: str
) -> None:
    path = kubeconfig(tmp_path / "config", user=user, cluster=cluster)
    with pytest.raises(ConfigError, match=complaint) as caught:
        load_access(path)
    assert SECRET not in str(caught.value)


def test_no_secret_is_in_an_accesss_repr(tmp_path: Path) -> None:
    user = {"token": SECRET, "client-key-data": base64.b64encode(SECRET.encode()).decode()}
    cluster = {"proxy-url": f"http://u:{SECRET}@p.example"}
    access = load_access(kubeconfig(tmp_path / "config", user=user, cluster=cluster))
    assert SECRET not in repr(access)
    assert repr(SECRET.encode()) not in repr(access)
    assert "c.example" in repr(access)


@pytest.mark.parametrize(
    ("server", "environment", "proxy"),
    [
        ("https://c.example", {"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
        ("https://c.example", {"https_proxy": "p:3128"}, "http://p:3128"),
        ("http://c.example", {"HTTPS_PROXY": "http://p:3128"}, None),
        ("http://c.example", {"HTTP_PROXY": "https://p:3128"}, "https://p:3128"),
        ("https://c.example", {"HTTPS_PROXY": "http://p", "NO_PROXY": "a, c.example"}, None),
        ("https://a.c.example", {"HTTPS_PROXY": "http://p", "NO_PROXY": ".c.example"}, None),
        ("https://xc.example", {"HTTPS_PROXY": "http://p", "NO_PROXY": "c.example"}, "http://p"),
        ("https://10.96.0.1", {"HTTPS_PROXY": "http://p", "NO_PROXY": "10.0.0.0/8"}, None),
        ("https://11.96.0.1", {"HTTPS_PROXY": "http://p", "no_proxy": "10.0.0.0/8"}, "http://p"),
        ("https://[fd00::1]:6443", {"HTTPS_PROXY": "http://p", "NO_PROXY": "fd00::/8"}, None),
        ("https://c.example", {"HTTPS_PROXY": "http://p", "NO_PROXY": "*"}, None),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://p"}, None),
        ("https://localhost", {"HTTPS_PROXY": "http://p"}, None),
    ],
)
def test_the_environment_names_proxies_as_everywhere(
    tmp_path: Path, server: str, environment: dict[str, str], proxy: str | None
) -> None:
    path = kubeconfig(tmp_path / "config", cluster={"server": server})
    assert load_access(path, environment=environment).proxy == proxy
