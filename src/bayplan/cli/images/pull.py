"""`bayplan images pull`: pull an image for a runtime handler."""

from __future__ import annotations

import base64
from pathlib import Path

from bayplan.cli.errors import EXIT_OK, BadInput
from bayplan.cli.images.connection import RuntimeConnection, with_runtime
from bayplan.cli.images.lookup import image_to_pull
from bayplan.cli.images.output import Format, say, show_data
from bayplan.cli.images.progress import pull_bars
from bayplan.images.credentials.keyring import credentials_for, keyring_of_file
from bayplan.images.runtime.cri import CriRuntime
from bayplan.images.runtime.objects import ImageSpec, RegistryAuth, RuntimeCallError


async def pull(  # noqa: PLR0913 - one for each option of the command
    image: str,
    /,
    *,
    runtime: str = "",
    connection: RuntimeConnection | None = None,
    output: Format = "table",
    creds: str = "",
    auth: str = "",
    docker_config: Path | None = None,
    annotation: dict[str, str] | None = None,
) -> int:
    """Pull an image for a runtime handler.

    Parameters
    ----------
    image
        The name; `:latest` is added if it has neither tag nor digest.
    runtime
        The runtime handler, whose platform selects the manifest of an image index; by default the
        runtime's default one.
    output
        The output format.
    creds
        USER:PASSWORD. Visible to other users of this machine; prefer --docker-config.
    auth
        base64 of USER:PASSWORD, as in Docker's config.json.
    docker_config
        A Docker config.json; all credentials that match the image are tried in turn.
    annotation
        Annotations for the runtime, as --annotation.KEY VALUE.
    """
    connection = connection or RuntimeConnection()
    name = image_to_pull(image)
    handler = connection.checked_handler(runtime)
    offers = _offers(name, creds, auth, docker_config)
    spec = ImageSpec(name, handler, annotation or {}, image)

    async def work(cri: CriRuntime) -> int:
        image_ref = await _pull_in_turn(cri, spec, offers)
        if output == "table":
            say(f"Image is up to date for {image_ref}")
        else:
            show_data({"imageRef": image_ref, "runtimeHandler": handler}, output)
        return EXIT_OK

    return await with_runtime(connection, work)


async def _pull_in_turn(cri: CriRuntime, spec: ImageSpec, offers: list[RegistryAuth]) -> str:
    """Pull with each of the credentials in turn; the error of the last one is raised."""
    async with pull_bars(cri.socket, spec):
        for offer in offers[:-1]:
            try:
                return await cri.pull_image(spec, offer, None)
            except RuntimeCallError:
                continue
        return await cri.pull_image(spec, offers[-1] if offers else None, None)


def _offers(name: str, creds: str, auth: str, docker_config: Path | None) -> list[RegistryAuth]:
    if bool(creds) + bool(auth) + bool(docker_config) > 1:
        raise BadInput("give only one of --creds, --auth and --docker-config")
    if creds:
        username, colon, password = creds.partition(":")
        if not username or not colon:
            raise BadInput("--creds: must be USER:PASSWORD")
        return [RegistryAuth(username=username, password=password)]
    if auth:
        return [RegistryAuth(auth=_checked_auth(auth))]
    return _from_file(name, docker_config) if docker_config else []


def _checked_auth(auth: str) -> str:
    try:
        base64.b64decode(auth, validate=True)
    except ValueError:
        raise BadInput("--auth: must be base64 of USER:PASSWORD") from None
    return auth


def _from_file(name: str, path: Path) -> list[RegistryAuth]:
    try:
        keyring = keyring_of_file(path)
    except (OSError, ValueError) as error:
        raise BadInput(f"--docker-config: {error}") from error
    return [credential.auth for credential in credentials_for(keyring, name)]
