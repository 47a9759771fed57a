"""From what the user gave us to an `Access`: kubeconfig files, or the pod we run in; proxies.

HTTPS_PROXY or HTTP_PROXY by the server's scheme, in either case of letters; NO_PROXY lists what is
reached directly: host names, with everything under them, addresses, networks such as 10.0.0.0/8, or
`*`. This machine itself is always reached directly.

The order is kubectl's: a path that was asked for, the files that KUBECONFIG names,
`~/.kube/config`, and inside a pod the service account that Kubernetes mounted there.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from bayplan.base.clock import Clock, WallClock
from bayplan.client.config.access import (
    Access,
    Anonymous,
    Credentials,
    FixedHeader,
    Pem,
    TlsSettings,
    TokenFile,
)
from bayplan.client.config.kubeconfig import Chosen, Cluster, User, choose
from bayplan.client.config.plugins import ExecCredentials, Plugin, ProvidedToken
from bayplan.client.errors import ConfigError


def proxy_for(server: str, named: str, environment: Mapping[str, str]) -> str | None:
    """The proxy's address, if there is one between us and that server."""
    proxy = named or _from_environment(server, environment)
    if not proxy:
        return None
    if web_address(proxy) is None:
        raise ConfigError("proxy: only http and https proxies are spoken to")
    return proxy


def web_address(text: str) -> SplitResult | None:
    """The parts of an http or https address; None if it is none."""
    try:
        parts = urlsplit(text)
        sound = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # half an IPv6 address, or a port that is none
        return None
    return parts if sound and text.isprintable() and " " not in text else None


def _from_environment(server: str, environment: Mapping[str, str]) -> str:
    parts = urlsplit(server)
    host = parts.hostname or ""
    proxy = _either_case(environment, f"{parts.scheme}_proxy")
    direct = _either_case(environment, "no_proxy").split(",")
    if not proxy or _is_here(host) or any(_covers(entry.strip(), host) for entry in direct):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _either_case(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.upper(), "")


def _is_here(host: str) -> bool:
    return host == "localhost" or _within(host, "127.0.0.0/8") or host == "::1"


def _covers(entry: str, host: str) -> bool:
    if not entry:
        return False
    domain = entry.lstrip("*").lstrip(".")
    return not domain or host == domain or host.endswith(f".{domain}") or _within(host, entry)


def _within(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False


SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load_access(
    kubeconfig: str | Path | None = None,
    *,
    context: str | None = None,
    environment: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> Access:
    """The access that this machine and user are set up with."""
    known = os.environ if environment is None else environment
    if paths := _kubeconfig_paths(kubeconfig, known):
        return from_kubeconfig(paths, context=context, environment=known, clock=clock)
    if known.get("KUBERNETES_SERVICE_HOST"):
        return from_service_account(known)
    raise ConfigError("no kubeconfig: set KUBECONFIG, or write ~/.kube/config")


def _kubeconfig_paths(asked: str | Path | None, known: Mapping[str, str]) -> list[Path]:
    if asked is not None:
        return [Path(asked).expanduser()]
    if named := known.get("KUBECONFIG"):
        return [Path(part).expanduser() for part in named.split(os.pathsep) if part]
    home = Path(known.get("HOME", "~")).expanduser() / ".kube" / "config"
    return [home] if home.exists() else []


def from_kubeconfig(
    paths: Sequence[Path],
    *,
    context: str | None = None,
    environment: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> Access:
    """The access that one context of these files, merged, gives."""
    chosen = choose(paths, context)
    known = os.environ if environment is None else environment
    return Access(
        server=_server(chosen.cluster),
        tls=_tls(chosen),
        credentials=_credentials(chosen, known, clock or WallClock()),
        proxy=proxy_for(chosen.cluster.server, chosen.cluster.proxy_url, known),
        namespace=chosen.namespace,
        impersonation=_impersonation(chosen.user),
    )


def from_service_account(known: Mapping[str, str], mounted: Path = SERVICE_ACCOUNT) -> Access:
    """The access that Kubernetes gives to a pod."""
    host = known.get("KUBERNETES_SERVICE_HOST", "")
    port = known.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError("KUBERNETES_SERVICE_HOST is not set: this is not a pod")
    namespace = mounted / "namespace"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Access(
        server=server,
        tls=TlsSettings(authority=mounted / "ca.crt"),
        credentials=TokenFile(mounted / "token"),
        proxy=proxy_for(server, "", known),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
    )


def _server(cluster: Cluster) -> str:
    parts = web_address(cluster.server)
    if parts is None or parts.query:
        raise ConfigError("the cluster's server is not an http or https address")
    if "@" in parts.netloc:
        raise ConfigError("the cluster's server names a user; who asks is said under users")
    return cluster.server.rstrip("/")


def _tls(chosen: Chosen) -> TlsSettings:
    cluster, user = chosen.cluster, chosen.user
    authority = _pem(
        cluster.certificate_authority_data, cluster.certificate_authority, chosen.cluster_home
    )
    if cluster.insecure_skip_tls_verify and authority is not None:
        raise ConfigError("insecure-skip-tls-verify and a certificate authority exclude each other")
    return TlsSettings(
        authority=authority,
        certificate=_pem(user.client_certificate_data, user.client_certificate, chosen.user_home),
        key=_pem(user.client_key_data, user.client_key, chosen.user_home),
        server_name=cluster.tls_server_name or None,
        verify=not cluster.insecure_skip_tls_verify,
    )


def _pem(inline: str, path: str, home: Path) -> Pem | None:
    if inline:
        try:
            return base64.b64decode(inline, validate=True)
        except binascii.Error:
            raise ConfigError("a certificate or key in the kubeconfig is not base64") from None
    return home / path if path else None


def _credentials(chosen: Chosen, known: Mapping[str, str], clock: Clock) -> Credentials:
    user = chosen.user
    if user.token_file:
        return TokenFile(chosen.user_home / user.token_file)
    if user.token:
        return FixedHeader.bearer(user.token)
    if user.username:
        return FixedHeader.basic(user.username, user.password)
    if user.exec:
        told = _cluster_for_plugin(chosen)
        return ExecCredentials(Plugin(user.exec, chosen.user_home, told, known), clock)
    return ProvidedToken(user.auth_provider) if user.auth_provider else Anonymous()


def _cluster_for_plugin(chosen: Chosen) -> dict[str, object]:
    """What a plugin that asks for it is told of the cluster."""
    cluster, authority = chosen.cluster, _tls(chosen).authority
    if isinstance(authority, Path):
        authority = authority.read_bytes()
    told: dict[str, object] = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authority or b"").decode(),
        "proxy-url": cluster.proxy_url,
        "config": next(
            (
                extension.extension
                for extension in cluster.extensions or ()
                if extension.name == "client.authentication.k8s.io/exec"
            ),
            None,
        ),
    }
    return {key: value for key, value in told.items() if value}


def _impersonation(user: User) -> tuple[tuple[str, str], ...]:
    if not user.impersonate:
        return ()
    headers = [("Impersonate-User", user.impersonate)]
    if user.impersonate_uid:
        headers.append(("Impersonate-Uid", user.impersonate_uid))
    headers += [("Impersonate-Group", group) for group in user.impersonate_groups or ()]
    for key, values in (user.impersonate_extra or {}).items():
        headers += [(f"Impersonate-Extra-{key}", value) for value in values]
    return tuple(headers)
