"""A server's TLS, and its certificate, which can be changed while it serves."""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Generator
from pathlib import Path

from bayplan.client.serving.authority import KeyPair


def server_tls() -> ssl.SSLContext:
    """TLS for a server that has no certificate yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def show_pair(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Show that certificate to whoever connects from now on; ssl.SSLError if it cannot be."""
    with _private_file(pair.certificate + pair.key) as path:
        server_tls().load_cert_chain(path)  # one that fails would spoil what is shown now
        context.load_cert_chain(path)


@contextlib.contextmanager
def _private_file(content: bytes) -> Generator[Path, None, None]:
    """A file that only this user can read, for as long as it is needed."""
    descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield Path(path)
    finally:
        Path(path).unlink()
