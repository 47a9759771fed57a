"""`bayplan images status`: whether an image is there for a runtime handler."""

from __future__ import annotations

from bayplan.cli.errors import EXIT_NO, EXIT_OK
from bayplan.cli.images.connection import Connection, with_runtime
from bayplan.cli.images.lookup import find
from bayplan.cli.images.output import Format, human_size, image_data, say, show_data, shown_handler
from bayplan.images.runtime.cri import CriRuntime
from bayplan.images.runtime.objects import Image, ImageSpec


async def status(
    image: str,
    /,
    *,
    runtime: str = "",
    connection: Connection | None = None,
    output: Format = "table",
) -> int:
    """Say whether an image is there; exits with 1 if it is not.

    Parameters
    ----------
    image
        A name, or an id (or its beginning).
    runtime
        The runtime handler; without it, the default one.
    output
        For people, or for programs.
    """
    connection = connection or Connection()
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
    """Print what is known of an image, a line each."""
    say(f"ID: {image.id}")
    for tag in image.tags:
        say(f"Tag: {tag}")
    for digest in image.digests:
        say(f"Digest: {digest}")
    say(f"Size: {human_size(image.size)}")
    say(f"Runtime: {shown_handler(image.handler, default_handler)}")
    say(f"Pinned: {str(image.pinned).lower()}")
