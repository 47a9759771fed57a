"""Finds an image by its name, its ID, or a prefix of its ID."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bayplan.cli.errors import BadInput
from bayplan.cli.images.output import complain, shown_handler
from bayplan.images.runtime.cri import CriRuntime
from bayplan.images.runtime.objects import Image, ImageKey, ImageSpec
from bayplan.kube.imagereferences import (
    InvalidReferenceError,
    image_id,
    parse_image,
    with_default_tag,
)

_ID_BEGINNING = re.compile(r"(?:sha256:)?(?P<hex>[0-9a-f]{3,64})")


def image_to_pull(text: str) -> str:
    """Return the name with its default tag; BadInput if it is invalid."""
    try:
        return with_default_tag(text)
    except InvalidReferenceError as error:
        raise BadInput(str(error)) from error


def matches(image: Image, text: str) -> bool:
    """Return whether the text is a name, the repository or an ID prefix of an image."""
    beginning = _ID_BEGINNING.fullmatch(text)
    if beginning and image.id.removeprefix("sha256:").startswith(beginning["hex"]):
        return True
    try:
        wanted = parse_image(text)
    except InvalidReferenceError:
        return False
    if wanted.tag or wanted.digest:
        return str(wanted) in image.names
    return any(parse_image(name).repository == wanted.repository for name in image.names)


async def find(runtime: CriRuntime, text: str, handler: str) -> ImageKey | None:
    """Return the one image of a handler that matches; None, with an error printed, if none does."""
    wanted = image_id(text) or text
    image = await runtime.image_status(ImageSpec(wanted, handler))
    if image is not None:
        return ImageKey(image.id, handler)
    images = [image for image in await runtime.list_images() if _by_id_beginning(image, text)]
    here = {image.id for image in images if image.handler == handler}
    if len(here) == 1:
        return ImageKey(here.pop(), handler)
    complain(await _why_not(runtime, text, handler, len(here)))
    return None


def _by_id_beginning(image: Image, text: str) -> bool:
    return _ID_BEGINNING.fullmatch(text) is not None and matches(image, text)


async def _why_not(runtime: CriRuntime, text: str, handler: str, candidates: int) -> str:
    if candidates > 1:
        return f"{text}: ambiguous, {candidates} images have an ID with this prefix"
    images = await runtime.list_images()
    default = await runtime.default_handler()
    elsewhere = _handlers_of((image for image in images if matches(image, text)), default)
    whose = f"runtime handler {handler!r}" if handler else "the default runtime handler"
    hint = f"; it exists for {elsewhere}, see --runtime" if elsewhere else ""
    return f"{text}: image not found for {whose}{hint}"


def _handlers_of(images: Iterable[Image], default: str) -> str:
    return ", ".join(sorted({repr(shown_handler(image.handler, default)) for image in images}))
