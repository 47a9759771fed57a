"""`bayplan images info`: details of an image, or of the runtime and its image filesystem."""

from __future__ import annotations

import json
from pathlib import Path

from bayplan.base.values import JsonValue
from bayplan.cli.errors import EXIT_NO, EXIT_OK, BadInput
from bayplan.cli.images.connection import RuntimeConnection, with_runtime
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
    connection: RuntimeConnection | None = None,
    output: Format = "table",
    platform: Switch = False,
    config: Path | None = None,
) -> int:
    """Show details of an image; without one, of the runtime.

    Parameters
    ----------
    image
        A name, or an ID or its prefix.
    runtime
        The runtime handler; by default the runtime's default one.
    output
        The output format.
    platform
        Show which manifest of the image's index each handler, or that of --runtime, would get.
    config
        With --platform, a containerd configuration with the handlers; by default they are read from
        the runtime.
    """
    connection = connection or RuntimeConnection()
    handler = connection.checked_handler(runtime)
    if platform:
        return await show_offers(image_to_pull(image), connection, config, handler, output)
    if config is not None:
        raise BadInput("--config: needs --platform")

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
    say(f"Handlers: {', '.join(name or '(default)' for name in handlers) or 'unknown'}")
    for usage in filesystems:
        say(f"Images: {human_size(usage.used_bytes)}, {usage.inodes_used} inodes")
        say(f"On: {usage.mountpoint}")


def _parsed(text: str) -> JsonValue:
    """Parse JSON text of the runtime; other text is returned unchanged."""
    try:
        parsed: JsonValue = json.loads(text)
    except ValueError:
        return text
    return parsed
