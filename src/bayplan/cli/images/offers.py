"""`bayplan images info --platform`: the manifest of an index for each handler, without pulling."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from bayplan.base.values import JsonValue
from bayplan.cli.errors import EXIT_NO, EXIT_OK, BadInput
from bayplan.cli.images.connection import RuntimeConnection
from bayplan.cli.images.output import complain, human_size, show_data, show_table
from bayplan.images.explain import HandlerSelection, explain
from bayplan.images.handlers import RuntimeHandler, RuntimeHandlers, UnknownHandlerError
from bayplan.images.platforms import PlatformMatcher, host_platform
from bayplan.images.registry.client import PullSource, RegistryClient, RegistryLogin
from bayplan.images.registry.download import MinimumRate
from bayplan.images.registry.errors import PullError, Retrier, image_to_pull
from bayplan.images.registry.transport import RegistryTimeouts, RegistryTransport
from bayplan.images.runtime.cri import CriRuntime
from bayplan.images.runtime.objects import RuntimeCallError
from bayplan.images.settings import CriSettings, load_settings


class _Configured(msgspec.Struct, rename="camel"):
    """The handlers in the status of our CRI server."""

    default_runtime_name: str
    runtimes: dict[str, PlatformMatcher]


async def show_offers(
    image: str, connection: RuntimeConnection, config: Path | None, handler: str, output: str
) -> int:
    """Show the manifest that each handler would get; exits with 1 if one would get none."""
    settings = _read(config) if config else await _asked(connection)
    names = [handler] if handler else settings.handlers.names()
    try:
        handlers = [settings.handlers.get(name) for name in names]
    except UnknownHandlerError as error:
        raise BadInput(f"--runtime: {error}") from error
    try:
        source = PullSource(image_to_pull(image), RegistryLogin(keyring=settings.keyring))
        async with _registry(settings) as registry:
            offers = await explain(registry, source, handlers)
    except PullError as error:
        complain(f"{image}: {error}")
        return EXIT_NO
    _show(offers, settings.handlers.default, output)
    return EXIT_NO if any(offer.problem for offer in offers) else EXIT_OK


def _read(config: Path) -> CriSettings:
    try:
        return load_settings(config, host_platform())
    except (ValueError, OSError) as error:
        raise BadInput(f"--config {config}: {error}") from error


async def _asked(connection: RuntimeConnection) -> CriSettings:
    """Return the runtime's handlers; if unknown, one handler for this machine's platform."""
    fallback = load_settings(None, host_platform())
    try:
        async with CriRuntime(connection.endpoint, connection.timeout) as runtime:
            config = (await runtime.status_info()).get("config", "")
        configured = msgspec.json.decode(config, type=_Configured)
    except (RuntimeCallError, msgspec.DecodeError):
        return fallback
    handlers = [RuntimeHandler(name, matcher) for name, matcher in configured.runtimes.items()]
    named = RuntimeHandlers(configured.default_runtime_name, handlers)
    return msgspec.structs.replace(fallback, handlers=named)


@asynccontextmanager
async def _registry(settings: CriSettings) -> AsyncIterator[RegistryClient]:
    transport = RegistryTransport(RegistryTimeouts())
    try:
        yield RegistryClient(transport, Retrier(), MinimumRate(), settings.hosts_directory)
    finally:
        await transport.close()


def _show(offers: list[HandlerSelection], default: str, output: str) -> None:
    if output != "table":
        show_data({"offers": [_data(offer, default) for offer in offers]}, output)
        return
    rows = [
        [
            f"{offer.handler} (default)" if offer.handler == default else offer.handler,
            str(offer.wanted),
            str(offer.platform) if offer.platform else "-",
            offer.manifest[:19] or "-",
            human_size(offer.size) if offer.size else "-",
        ]
        for offer in offers
    ]
    show_table(["RUNTIME", "WANTED", "GETS", "MANIFEST", "SIZE"], rows)
    for offer in offers:
        if offer.problem:
            complain(f"{offer.handler}: {offer.problem}")


def _data(offer: HandlerSelection, default: str) -> dict[str, JsonValue]:
    return {
        "runtimeHandler": offer.handler,
        "default": offer.handler == default,
        "wanted": msgspec.to_builtins(offer.wanted),
        "platform": msgspec.to_builtins(offer.platform),
        "manifest": offer.manifest,
        "imageId": offer.image_id,
        "size": offer.size,
        "problem": offer.problem,
    }
