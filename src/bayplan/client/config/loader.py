"""Loading an `Access`: from kubeconfig files or the pod's service account; proxies.

HTTPS_PROXY or HTTP_PROXY by the server's scheme, in either case of letters; NO_PROXY lists what is
reached directly: host names, with everything under them, addresses, networks such as 10.0.0.0/8, or
`*`. This machine itself is always reached directly.

The order is kubectl's: the given path, the files that KUBECONFIG names,
`~/.kube/config`, and inside a pod the mounted service account.
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
    Pem,
    StaticHeader,
    TlsSettings,
    TokenFile,
)
from bayplan.client.config.kubeconfig import Cluster, ResolvedContext, User, resolve_context
from bayplan.client.config.plugins import AuthProviderToken, ExecCredentials, ExecPlugin
from bayplan.client.errors import ConfigError


def proxy_for(server: str, named: str, environment: Mapping[str, str]) -> str | None:
    """Return the URL of the proxy for that server, if there is one."""
    proxy = named or _from_environment(server, environment)
    if not proxy:
        return None
    if web_address(proxy) is None:
        raise ConfigError("proxy: only http and https proxies are supported")
    return proxy


def web_address(text: str) -> SplitResult | None:
    """Return the parts of an http or https URL; None if it is not one."""
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # a cut IPv6 address, or an invalid port
        return None
    return parts if is_valid and text.isprintable() and " " not in text else None


def _from_environment(server: str, environment: Mapping[str, str]) -> str:
    parts = urlsplit(server)
    host = parts.hostname or ""
    proxy = _either_case(environment, f"{parts.scheme}_proxy")
    direct = _either_case(environment, "no_proxy").split(",")
    if not proxy or _is_local(host) or any(_covers(entry.strip(), host) for entry in direct):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _either_case(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.upper(), "")


def _is_local(host: str) -> bool:
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
    """Return the access that this machine and user are configured with."""
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
    """Return the access of one context of these files, merged."""
    resolved = resolve_context(paths, context)
    known = os.environ if environment is None else environment
    return Access(
        server=_server(resolved.cluster),
        tls=_tls(resolved),
        credentials=_credentials(resolved, known, clock or WallClock()),
        proxy=proxy_for(resolved.cluster.server, resolved.cluster.proxy_url, known),
        namespace=resolved.namespace,
        impersonation=_impersonation(resolved.user),
    )


def from_service_account(known: Mapping[str, str], mounted: Path = SERVICE_ACCOUNT) -> Access:
    """Return the access of a pod's service account."""
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
        raise ConfigError("the cluster's server is not an http or https URL")
    if "@" in parts.netloc:
        raise ConfigError(
            "the cluster's server has a user in its URL; credentials belong under users"
        )
    return cluster.server.rstrip("/")


def _tls(context: ResolvedContext) -> TlsSettings:
    cluster, user = context.cluster, context.user
    authority = _pem(
        cluster.certificate_authority_data, cluster.certificate_authority, context.cluster_directory
    )
    if cluster.insecure_skip_tls_verify and authority is not None:
        raise ConfigError("insecure-skip-tls-verify and a certificate authority exclude each other")
    return TlsSettings(
        authority=authority,
        certificate=_pem(
            user.client_certificate_data, user.client_certificate, context.user_directory
        ),
        key=_pem(user.client_key_data, user.client_key, context.user_directory),
        server_name=cluster.tls_server_name or None,
        verify=not cluster.insecure_skip_tls_verify,
    )


def _pem(inline: str, path: str, directory: Path) -> Pem | None:
    if inline:
        try:
            return base64.b64decode(inline, validate=True)
        except binascii.Error:
            raise ConfigError("a certificate or key in the kubeconfig is not base64") from None
    return directory / path if path else None


def _credentials(context: ResolvedContext, known: Mapping[str, str], clock: Clock) -> Credentials:
    user = context.user
    if user.token_file:
        return TokenFile(context.user_directory / user.token_file)
    if user.token:
        return StaticHeader.bearer(user.token)
    if user.username:
        return StaticHeader.basic(user.username, user.password)
    if user.exec:
        cluster = _cluster_for_plugin(context)
        return ExecCredentials(ExecPlugin(user.exec, context.user_directory, cluster, known), clock)
    return AuthProviderToken(user.auth_provider) if user.auth_provider else Anonymous()


def _cluster_for_plugin(context: ResolvedContext) -> dict[str, object]:
    """Return the cluster's fields for an exec plugin with `provideClusterInfo`."""
    cluster, authority = context.cluster, _tls(context).authority
    if isinstance(authority, Path):
        authority = authority.read_bytes()
    fields: dict[str, object] = {
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
    return {key: value for key, value in fields.items() if value}


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
