"""The connection to Azure Resource Manager: a credential, and a client that is bounded.

Azure's libraries are imported only when they are used. Their retries and redirects are off: every
request carries a token. Responses are read up to a maximum size, and the libraries' logs of
requests stay off.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import aiohttp

from bayplan.autoscaler.providers.azure.config import AzureConfig, AzureIdentity, IdentityKind
from bayplan.autoscaler.providers.azure.sdk import AzureSdk, AzureTarget
from bayplan.autoscaler.providers.options import ProviderOptionError
from bayplan.base.clock import Clock

_NOISY = ("azure", "msal")


@dataclass(frozen=True, slots=True)
class AzureLimits:
    """Timeouts of calls to Azure in seconds, and the maximum size of a response."""

    connect: float = 5.0
    read: float = 15.0
    whole: float = 25.0
    """For one call, with all its retries."""
    body: int = 64 << 20
    """Bytes."""


@dataclass(frozen=True, slots=True)
class AzureConnection:
    """The address of Azure Resource Manager, and a credential of azure-core."""

    endpoint: str
    credential: Any


def bounded_response(most: int) -> type[aiohttp.ClientResponse]:
    """Return a class of responses whose body is read up to a maximum size."""

    class BoundedResponse(aiohttp.ClientResponse):
        async def read(self) -> bytes:
            parts, size = [], 0
            async for part in self.content.iter_chunked(64 << 10):
                size += len(part)
                if size > most:
                    self.close()
                    raise aiohttp.ClientPayloadError(f"more than {most} bytes")
                parts.append(part)
            return b"".join(parts)

    return BoundedResponse


@asynccontextmanager
async def open_sdk(
    config: AzureConfig,
    clock: Clock,
    rng: Random,
    limits: AzureLimits,
    connection: AzureConnection | None = None,
) -> AsyncIterator[AzureSdk]:
    """Open a client for the configuration, or for a connection that is passed."""
    _require_libraries()
    from azure.core.pipeline.transport import AioHttpTransport  # noqa: PLC0415 - see above
    from azure.mgmt.compute.aio import ComputeManagementClient  # noqa: PLC0415 - see above

    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(
            aiohttp.ClientSession(
                response_class=bounded_response(limits.body),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=True,
            )
        )
        transport = AioHttpTransport(
            session=session,
            session_owner=False,
            connection_timeout=limits.connect,
            read_timeout=limits.read,
        )
        settings = {"transport": transport, "retry_total": 0}
        if connection is None:
            credential = _credential(config, config.identity, settings)
            await stack.enter_async_context(credential)
            connection = AzureConnection(config.cloud.endpoint, credential)
        client = ComputeManagementClient(
            connection.credential,
            config.subscription,
            connection.endpoint,
            credential_scopes=[f"{connection.endpoint}/.default"],
            permit_redirects=False,
            user_agent="bayplan",
            **settings,
        )
        await stack.enter_async_context(client)
        target = AzureTarget(
            connection.endpoint, config.resource_group, config.force_delete, limits.whole
        )
        yield AzureSdk(client, target, clock, rng)


def _require_libraries() -> None:
    try:
        import azure.identity.aio  # noqa: PLC0415 - only who uses Azure needs it
        import azure.mgmt.compute.aio  # noqa: F401, PLC0415 - see above
    except ImportError:
        raise ProviderOptionError(
            "--cloud-provider azure: Azure's libraries are not installed; install bayplan[azure]"
        ) from None
    for name in _NOISY:
        logger = logging.getLogger(name)
        logger.setLevel(max(logging.WARNING, logger.level))


def _credential(config: AzureConfig, identity: AzureIdentity, settings: dict[str, Any]) -> Any:
    """Return the credential that is configured; no request is sent."""
    from azure.identity import aio  # noqa: PLC0415 - only who uses Azure needs it

    options = {"authority": config.cloud.authority, **settings}
    if identity.kind is IdentityKind.MANAGED:
        return aio.ManagedIdentityCredential(**_managed(identity), **settings)
    if identity.kind is IdentityKind.WORKLOAD:
        return aio.WorkloadIdentityCredential(
            tenant_id=identity.tenant,
            client_id=identity.client,
            token_file_path=identity.file,
            **options,
        )
    if identity.kind is IdentityKind.SECRET:
        return aio.ClientSecretCredential(
            identity.tenant, identity.client, identity.secret, **options
        )
    return _certificate(identity, options)


def _managed(identity: AzureIdentity) -> dict[str, Any]:
    if identity.client.startswith("/"):
        return {"identity_config": {"resource_id": identity.client}}
    return {"client_id": identity.client} if identity.client else {}


def _certificate(identity: AzureIdentity, options: dict[str, Any]) -> Any:
    from azure.identity import aio  # noqa: PLC0415 - only who uses Azure needs it

    try:
        return aio.CertificateCredential(
            identity.tenant,
            identity.client,
            certificate_path=identity.file,
            password=identity.secret or None,
            **options,
        )
    except (OSError, ValueError, TypeError) as error:
        # The library's message could quote the key.
        raise ProviderOptionError(
            f"--cloud-provider azure: aadClientCertPath {identity.file}: cannot be read:"
            f" {type(error).__name__}"
        ) from None
