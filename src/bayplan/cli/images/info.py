"""`bayplan images info`: all about an image, or about the runtime and its image filesystem."""

from __future__ import annotations

import json
from pathlib import Path

from bayplan.base.values import JsonValue
from bayplan.cli.errors import EXIT_NO, EXIT_OK, BadInput
from bayplan.cli.images.connection import Connection, with_runtime
from bayplan.cli.images.lookup import find, image_to_pull
from bayplan.cli.images.offers import show_offers
from bayplan.cli.images.output import (
    Format,
    filesystem_data,
    human_size,
    image_data,
    say,
    show_data,
)
from bayplan.cli.images.status import show_image
from bayplan.cli.options.flags import Switch
from bayplan.images.runtime.cri import CriRuntime, ImageDetails
from bayplan.images.runtime.objects import ImageSpec


async def info(  # noqa: PLR0913 - one for each option of the command
    image: str = "",
    /,
    *,
    runtime: str = "",
    connection: Connection | None = None,
    output: Format = "table",
    platform: Switch = False,
    config: Path | None = None,
) -> int:
    """Show all that the runtime tells of an image; without one, of itself.

    Parameters
    ----------
    image
        A name, or an id (or its beginning).
    runtime
        The runtime handler; without it, the default one.
    output
        For people, or for programs.
    platform
        Show what an index would give each handler, or the one of --runtime.
    config
        With --platform: a containerd configuration with the handlers; without it, the runtime is
        asked.
    """
    connection = connection or Connection()
    handler = connection.checked_handler(runtime)
    if platform:
        return await show_offers(image_to_pull(image), connection, config, handler, output)
    if config is not None:
        raise BadInput("--config: only --platform reads it")

    async def about_image(cri: CriRuntime) -> int:
        key = await find(cri, image, handler)
        details = key and await cri.image_details(ImageSpec(key.id, key.handler))
        if not details:
            return EXIT_NO
        _show_details(details, await cri.default_handler(), output)
        return EXIT_OK

    async def about_runtime(cri: CriRuntime) -> int:
        await _show_runtime(cri, output)
        return EXIT_OK

    return await with_runtime(connection, about_image if image else about_runtime)


def _show_details(details: ImageDetails, default_handler: str, output: str) -> None:
    parsed = {name: _parsed(text) for name, text in details.info.items()}
    if output != "table":
        show_data({"status": image_data(details.image), "info": parsed}, output)
        return
    show_image(details.image, default_handler)
    for name, value in parsed.items():
        text = value if isinstance(value, str) else json.dumps(value, indent=2)
        for line in f"{name}: {text}".splitlines():
            say(line)


async def _show_runtime(cri: CriRuntime, output: str) -> None:
    version = await cri.version()
    handlers = await cri.handlers()
    filesystems = await cri.image_filesystems()
    if output != "table":
        data: dict[str, JsonValue] = {
            "runtimeName": version.name,
            "runtimeVersion": version.version,
            "runtimeApiVersion": version.api_version,
            "runtimeHandlers": list(handlers),
            "imageFilesystems": [filesystem_data(usage) for usage in filesystems],
        }
        show_data(data, output)
        return
    say(f"Runtime: {version.name} {version.version} (CRI {version.api_version})")
    say(f"Handlers: {', '.join(name or '(default)' for name in handlers) or 'not said'}")
    for usage in filesystems:
        say(f"Images: {human_size(usage.used_bytes)}, {usage.inodes_used} inodes")
        say(f"On: {usage.mountpoint}")


def _parsed(text: str) -> JsonValue:
    """Runtimes give JSON texts; whatever is none is shown as it is."""
    try:
        parsed: JsonValue = json.loads(text)
    except ValueError:
        return text
    return parsed
