"""`bayplan images list`: the images of the runtime, one line for each name and handler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bayplan.cli.errors import EXIT_OK
from bayplan.cli.images.connection import RuntimeConnection, with_runtime
from bayplan.cli.images.lookup import matches
from bayplan.cli.images.output import (
    Format,
    human_size,
    image_data,
    say,
    show_data,
    show_table,
    shown_handler,
)
from bayplan.cli.options.flags import Switch
from bayplan.images.runtime.cri import CriRuntime
from bayplan.images.runtime.objects import Image, with_gate
from bayplan.kube.imagereferences import InvalidReferenceError, parse_image

_NONE = "<none>"
_SHORT_ID = 13


@dataclass(frozen=True, slots=True)
class _Columns:
    digests: bool
    full_ids: bool
    pinned: bool
    handlers: bool
    default_handler: str = ""

    def header(self) -> list[str]:
        parts = ["IMAGE", "TAG", *(["DIGEST"] if self.digests else []), "IMAGE ID", "SIZE"]
        parts += ["RUNTIME"] if self.handlers else []
        return parts + (["PINNED"] if self.pinned else [])

    def rows(self, image: Image) -> Iterator[list[str]]:
        image_id = image.id.removeprefix("sha256:")
        for repository, tag, digest in _names(image):
            row = [repository, tag, *([digest] if self.digests else [])]
            row += [image.id if self.full_ids else image_id[:_SHORT_ID], human_size(image.size)]
            row += [shown_handler(image.handler, self.default_handler)] if self.handlers else []
            yield row + ([str(image.pinned).lower()] if self.pinned else [])


async def list_images(  # noqa: PLR0913 - one for each option of the command
    image: str = "",
    /,
    *,
    runtime: str | None = None,
    connection: RuntimeConnection | None = None,
    output: Format = "table",
    digests: Switch = False,
    no_trunc: Switch = False,
    pinned: Switch = False,
    quiet: Switch = False,
) -> int:
    """List images with their runtime handlers.

    Parameters
    ----------
    image
        Only images of this name, repository, or ID or its prefix.
    runtime
        Only images of this runtime handler; "" for the default one.
    output
        The output format.
    digests
        Show digests.
    no_trunc
        Show full IDs.
    pinned
        Show which images are pinned.
    quiet
        Print only IDs.
    """
    connection = connection or RuntimeConnection()
    connection.checked_handler(runtime or "")
    columns = _Columns(digests, no_trunc, pinned, connection.use_handlers)

    async def work(cri: CriRuntime) -> int:
        seen = with_gate(cri, enabled=connection.use_handlers)
        images = [each for each in await seen.list_images() if _selected(each, image, runtime)]
        images.sort(key=lambda each: (each.tags or each.digests or (each.id,), each.handler))
        named = replace(columns, default_handler=await cri.default_handler())
        _show(images, named, output, quiet=quiet)
        return EXIT_OK

    return await with_runtime(connection, work)


def _selected(image: Image, text: str, handler: str | None) -> bool:
    return (not text or matches(image, text)) and handler in {None, image.handler}


def _show(images: list[Image], columns: _Columns, output: str, *, quiet: bool) -> None:
    if quiet:
        for image in images:
            say(image.id)
    elif output != "table":
        show_data({"images": [image_data(image) for image in images]}, output)
    else:
        show_table(columns.header(), [row for image in images for row in columns.rows(image)])


def _names(image: Image) -> Iterator[tuple[str, str, str]]:
    """Repository, tag and digest of each of the image's names."""
    digests = {_repository(name): name.partition("@")[2] for name in image.digests}
    for name in image.tags:
        repository = _repository(name)
        tag = name.removeprefix(f"{repository}:")
        yield repository, tag, digests.get(repository, _NONE)[:20]
    if not image.tags:
        for repository, digest in (digests or {_NONE: _NONE}).items():
            yield repository, _NONE, digest[:20]


def _repository(name: str) -> str:
    try:
        return str(parse_image(name).repository)
    except InvalidReferenceError:
        return name
