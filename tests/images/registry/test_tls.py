"""Registries over TLS, with an authority of their own."""

import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.images.parts.hostile import HostileRegistry, running_hostile
from tests.images.parts.layouts import ImageBuilder, tar_of
from tests.images.parts.service import CONFIG, running_service, settings


def certificate(directory: Path) -> Path:
    """A self-signed certificate of 127.0.0.1 with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "registry")])
    start = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start.replace(year=2100))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = directory / "registry.pem"
    path.write_bytes(
        built.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path


@pytest.fixture
async def private(tmp_path: Path) -> AsyncIterator[HostileRegistry]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(tmp_path))
    async with running_hostile(ImageBuilder(), context) as running:
        yield running


async def pull(tmp_path: Path, private: HostileRegistry, trust: str) -> None:
    hosts = tmp_path / "certs.d" / private.host / "hosts.toml"
    hosts.parent.mkdir(parents=True)
    hosts.write_text(f'server = "https://{private.host}"\n{trust}\n')
    text = f"""{CONFIG}
[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "{tmp_path / "certs.d"}"
"""
    async with running_service(tmp_path / "store", settings(tmp_path, text)) as service:
        await service.pull(private.tag(private.builder.image(tar_of(("f", b"")))))


async def test_a_registry_is_trusted_by_its_own_authority(
    tmp_path: Path, private: HostileRegistry
) -> None:
    await pull(tmp_path, private, f'ca = "{tmp_path / "registry.pem"}"')


async def test_a_registry_is_trusted_blindly_only_if_the_operator_says_so(
    tmp_path: Path, private: HostileRegistry
) -> None:
    await pull(tmp_path, private, "skip_verify = true")


async def test_a_registry_of_an_unknown_authority_is_refused_at_once(
    tmp_path: Path, private: HostileRegistry
) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match="certificate"):
        await pull(tmp_path, private, "")
    assert private.asked == []
