"""The parts of a kubeconfig file, as its users write them."""

from __future__ import annotations

import msgspec


class _Kebab(msgspec.Struct, rename="kebab", kw_only=True):
    """Kubeconfig writes its keys with dashes."""


class Cluster(_Kebab):
    """Where a server is and how to know it."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[NamedExtension] | None = None


class NamedExtension(_Kebab):
    """Something that a cluster says to an exec plugin."""

    name: str
    extension: object = None


class ExecVariable(msgspec.Struct):
    """A variable for a plugin's environment."""

    name: str
    value: str = ""


class ExecSettings(msgspec.Struct, rename="camel"):
    """A program that gives credentials."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[ExecVariable] | None = None
    provide_cluster_info: bool = False
    install_hint: str = ""


class AuthProvider(msgspec.Struct):
    """A credential provider that was once built into clients."""

    name: str
    config: dict[str, str] | None = None


class User(_Kebab):
    """Who we are."""

    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    exec: ExecSettings | None = None
    auth_provider: AuthProvider | None = None
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: list[str] | None = msgspec.field(default=None, name="as-groups")
    impersonate_extra: dict[str, list[str]] | None = msgspec.field(
        default=None, name="as-user-extra"
    )


class Context(_Kebab):
    """A cluster, a user, and the namespace to work in."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(msgspec.Struct):
    """A cluster and its name."""

    name: str
    cluster: Cluster | None = None


class NamedUser(msgspec.Struct):
    """A user and its name."""

    name: str
    user: User | None = None


class NamedContext(msgspec.Struct):
    """A context and its name."""

    name: str
    context: Context | None = None


class KubeConfig(_Kebab):
    """One file."""

    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None
    current_context: str | None = None
