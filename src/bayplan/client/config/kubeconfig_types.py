"""The parts of a kubeconfig file, as its users write them."""

from __future__ import annotations

import msgspec


class _Kebab(msgspec.Struct, rename="kebab", kw_only=True):
    """Kubeconfig writes its keys with dashes."""


class Cluster(_Kebab):
    """Where a server is and how to know it."""

    server: str = ""
    """Its URL."""
    certificate_authority: str = ""
    """A file with who signs its certificate."""
    certificate_authority_data: str = ""
    """The same, as base64."""
    insecure_skip_tls_verify: bool = False
    """Believe any certificate."""
    tls_server_name: str = ""
    """The name in its certificate, if it is not that of the URL."""
    proxy_url: str = ""
    """An HTTP or HTTPS proxy on the way."""
    extensions: list[NamedExtension] | None = None
    """Handed to exec plugins that ask for it."""


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
    """A bearer token."""
    token_file: str = msgspec.field(default="", name="tokenFile")
    """A file with one, read again when it changes."""
    username: str = ""
    """With the password, for basic authentication."""
    password: str = ""
    client_certificate: str = ""
    """A file; read again when it changes."""
    client_certificate_data: str = ""
    client_key: str = ""
    """Its key."""
    client_key_data: str = ""
    exec: ExecSettings | None = None
    """A program that gives credentials."""
    auth_provider: AuthProvider | None = None
    """oidc and gcp, of older files."""
    impersonate: str = msgspec.field(default="", name="as")
    """Act as this user."""
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
