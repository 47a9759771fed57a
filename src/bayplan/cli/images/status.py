"""`bayplan images status`: whether an image exists for a runtime handler."""

from __future__ import annotations

from bayplan.cli.errors import EXIT_NO, EXIT_OK
from bayplan.cli.images.connection import RuntimeConnection, with_runtime
from bayplan.cli.images.lookup import find
from bayplan.cli.images.output import Format, human_size, image_data, say, show_data, shown_handler
from bayplan.images.runtime.cri import CriRuntime
from bayplan.images.runtime.objects import Image, ImageSpec


async def status(
    image: str,
    /,
    *,
    runtime: str = "",
    connection: RuntimeConnection | None = None,
    output: Format = "table",
) -> int:
    """Show whether an image exists; exits with 1 if it does not.

    Parameters
    ----------
    image
        A name, or an ID or its prefix.
    runtime
        The runtime handler; by default the runtime's default one.
    output
        The output format.
    """
    connection = connection or RuntimeConnection()
    handler = connection.checked_handler(runtime)

    async def work(cri: CriRuntime) -> int:
        key = await find(cri, image, handler)
        found = key and await cri.image_status(ImageSpec(key.id, key.handler))
        if not found:
            return EXIT_NO
        if output == "table":
            show_image(found, await cri.default_handler())
        else:
            show_data({"status": image_data(found)}, output)
        return EXIT_OK

    return await with_runtime(connection, work)


def show_image(image: Image, default_handler: str) -> None:
    """Print the fields of an image, one per line."""
    say(f"ID: {image.id}")
    for tag in image.tags:
        say(f"Tag: {tag}")
    for digest in image.digests:
        say(f"Digest: {digest}")
    say(f"Size: {human_size(image.size)}")
    say(f"Runtime: {shown_handler(image.handler, default_handler)}")
    say(f"Pinned: {str(image.pinned).lower()}")
