"""`bayplan images rm`: remove images of one runtime handler."""

from __future__ import annotations

from bayplan.cli.errors import EXIT_NO, EXIT_OK, BadInput
from bayplan.cli.images.connection import RuntimeConnection, with_runtime
from bayplan.cli.images.lookup import find
from bayplan.cli.images.output import complain, say
from bayplan.cli.options.flags import Switch
from bayplan.images.image_gc import used_by_containers
from bayplan.images.runtime.cri import CriRuntime
from bayplan.images.runtime.objects import ImageKey, ImageSpec, RuntimeCallError


async def remove(
    *images: str,
    runtime: str = "",
    connection: RuntimeConnection | None = None,
    all_images: Switch = False,
    prune: Switch = False,
) -> int:
    """Remove images, each with all its tags, for one runtime handler.

    Parameters
    ----------
    images
        Names, or IDs or their prefixes.
    runtime
        The runtime handler; by default the runtime's default one. Images of other handlers are
        kept.
    all_images
        Every image of the handler that is not pinned.
    prune
        Every image of the handler that is neither pinned nor in use.
    """
    connection = connection or RuntimeConnection()
    handler = connection.checked_handler(runtime)
    if bool(images) + all_images + prune != 1:
        raise BadInput("give images, or one of --all-images and --prune")

    async def work(cri: CriRuntime) -> int:
        if images:
            found = [await find(cri, image, handler) for image in images]
        else:
            found = [*await _candidates(cri, handler, prune=prune)]
        removed = [key is not None and await _remove(cri, key) for key in found]
        return EXIT_OK if all(removed) else EXIT_NO

    return await with_runtime(connection, work)


async def _candidates(cri: CriRuntime, handler: str, *, prune: bool) -> list[ImageKey]:
    images = await cri.list_images()
    in_use = await cri.images_in_use() if prune else set()
    used = used_by_containers({image.key for image in images}, in_use)
    free = [image for image in images if not image.pinned and image.key not in used]
    return [image.key for image in free if image.handler == handler]


async def _remove(cri: CriRuntime, key: ImageKey) -> bool:
    try:
        await cri.remove_image(ImageSpec(key.id, key.handler))
    except RuntimeCallError as error:
        complain(f"{key.id}: {error}")
        return False
    say(f"Deleted: {key.id}" + (f" ({key.handler})" if key.handler else ""))
    return True
