"""Our words into the CRI's: entries into images, failures into status codes."""

import grpc
import msgspec

from bayplan.images.cri import cri_pb2 as cri
from bayplan.images.handlers import UnknownHandlerError
from bayplan.images.registry import errors
from bayplan.images.registry.client import Login
from bayplan.images.registry.credentials import Credentials, Keyring, decode_auth
from bayplan.images.store.entries import Entry

_LARGEST_UID = 2**63 - 1
_CODES: list[tuple[type[Exception], grpc.StatusCode]] = [
    (UnknownHandlerError, grpc.StatusCode.INVALID_ARGUMENT),
    (errors.MalformedReferenceError, grpc.StatusCode.INVALID_ARGUMENT),
    (errors.NotFoundError, grpc.StatusCode.NOT_FOUND),
    (errors.PlatformError, grpc.StatusCode.NOT_FOUND),
    (errors.AuthenticationError, grpc.StatusCode.UNAUTHENTICATED),
    (errors.UnavailableError, grpc.StatusCode.UNAVAILABLE),
    (errors.IntegrityError, grpc.StatusCode.DATA_LOSS),
    (errors.StorageFullError, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (errors.PullError, grpc.StatusCode.UNKNOWN),
]


def to_image(entry: Entry, handler: str, *, pinned: bool) -> cri.Image:
    """Describe an entry; the handler is spelled as the CRI knows it."""
    user = entry.user.partition(":")[0]
    numeric = user.isascii() and user.isdigit() and int(user) <= _LARGEST_UID
    return cri.Image(
        id=entry.image_id,
        repo_tags=entry.tags,
        repo_digests=entry.digests,
        size=entry.size,
        uid=cri.Int64Value(value=int(user)) if numeric else None,
        username="" if numeric else user,
        spec=cri.ImageSpec(image=entry.image_id, runtime_handler=handler),
        pinned=pinned,
    )


def to_info(entry: Entry, config: bytes) -> dict[str, str]:
    """Say more about an image, as JSON."""
    details = {
        "runtimeHandler": entry.handler,
        "platform": entry.platform,
        "manifest": entry.manifest,
        "chainID": entry.chains[-1] if entry.chains else "",
        "imageSpec": msgspec.Raw(config),
    }
    return {"info": msgspec.json.encode(details).decode()}


def to_login(auth: cri.AuthConfig, keyring: Keyring[Credentials]) -> Login:
    """Read a request's credentials."""
    username, password = auth.username, auth.password
    if auth.auth and not username:
        username, password = decode_auth(auth.auth)
    given = Credentials(username, password, auth.identity_token, auth.registry_token)
    return Login(given or None, auth.server_address, keyring)


def to_status(error: Exception) -> tuple[grpc.StatusCode, str]:
    """Give a failure its code, and the words kubelets look for."""
    if isinstance(error, errors.UnavailableError):
        return grpc.StatusCode.UNAVAILABLE, f"RegistryUnavailable: {error}"
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code, str(error)
    return grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}"
