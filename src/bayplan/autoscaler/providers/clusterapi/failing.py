"""What an API server's refusals mean to whoever buys nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bayplan import nodegroups
from bayplan.client.errors import (
    ApiError,
    ClientError,
    ConflictError,
    NotFoundError,
    ServerFaultError,
    TooManyRequestsError,
    TransportError,
)
from bayplan.nodegroups import NodeGroupError, RefusedError, UnavailableError

_LATER = (TransportError, ServerFaultError, TooManyRequestsError)


@contextmanager
def translated() -> Iterator[None]:
    """Refusals as the provider's errors; a conflict is for whoever asks to deal with."""
    try:
        yield
    except ConflictError:
        raise
    except NotFoundError as error:
        raise nodegroups.NotFoundError(str(error)) from error
    except _LATER as error:
        raise UnavailableError(str(error)) from error
    except ApiError as error:
        raise RefusedError(str(error)) from error
    except ClientError as error:
        raise NodeGroupError(str(error)) from error
