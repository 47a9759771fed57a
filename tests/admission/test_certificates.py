"""Certificates: made, shared, renewed before they end, and never such that an API server, which may
be a step behind, meets one that it does not trust."""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.admission.certificates import (
    DEFAULT_LIFETIMES,
    SECRETS,
    BundleError,
    CertificateBundle,
    CertificateFiles,
    CertificateLifetimes,
    SharedSecret,
    checked,
    end_of,
    renewed,
)
from bayplan.client import Client, Untyped, merge
from bayplan.client.serving.certificates import (
    CertificateAuthority,
    KeyPair,
    load_key_pair,
    server_tls,
)
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.lab import VirtualLab

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("bayplan-webhook.kube-system.svc",)
DAY = timedelta(days=1)
SHORT = CertificateLifetimes(serving=timedelta(hours=9), authority=timedelta(hours=72))


def is_trusted(bundle: CertificateBundle, by: bytes, now: datetime) -> bool:
    """Whether an API server that trusts those authorities takes what the bundle serves."""
    leaf = x509.load_pem_x509_certificate(bundle.serving.certificate)
    if not leaf.not_valid_before_utc <= now < leaf.not_valid_after_utc:
        return False
    for root in x509.load_pem_x509_certificates(by):
        if root.subject == leaf.issuer and root.not_valid_after_utc > now:
            try:
                leaf.verify_directly_issued_by(root)
            except Exception:  # noqa: BLE001 - another authority of the same name
                continue
            return True
    return False


def test_a_first_bundle_is_whole_and_stays_until_something_is_due() -> None:
    bundle = renewed(None, NAMES, NOW, DEFAULT_LIFETIMES)
    assert checked(bundle) is bundle
    assert is_trusted(bundle, bundle.trusted, NOW)
    assert renewed(bundle, NAMES, NOW + 59 * DAY, DEFAULT_LIFETIMES) is bundle
    later = renewed(bundle, NAMES, NOW + 61 * DAY, DEFAULT_LIFETIMES)
    assert later.authority == bundle.authority
    assert end_of(later.serving) > end_of(bundle.serving)


def test_other_names_ask_for_another_certificate() -> None:
    bundle = renewed(None, NAMES, NOW, DEFAULT_LIFETIMES)
    other = renewed(bundle, ("127.0.0.1",), NOW, DEFAULT_LIFETIMES)
    assert other.serving != bundle.serving
    assert renewed(other, ("127.0.0.1",), NOW, DEFAULT_LIFETIMES) is other


def test_what_has_ended_is_made_anew() -> None:
    bundle = renewed(None, NAMES, NOW, DEFAULT_LIFETIMES)
    later = NOW + 3 * DEFAULT_LIFETIMES.authority
    again = renewed(bundle, NAMES, later, DEFAULT_LIFETIMES)
    assert is_trusted(again, again.trusted, later)


@settings(max_examples=20)
@given(st.lists(st.floats(0.05, 0.33), min_size=10, max_size=60))
def test_who_is_a_step_behind_still_trusts_what_is_served(steps: list[float]) -> None:
    """Looked at often enough, a certificate is never served before its authority is known."""
    now, bundle = NOW, renewed(None, NAMES, NOW, SHORT)
    for step in steps:
        before = bundle
        now += SHORT.serving * step
        bundle = renewed(bundle, NAMES, now, SHORT)
        assert is_trusted(bundle, before.trusted, now)
        assert is_trusted(before, bundle.trusted, now)
        assert len(x509.load_pem_x509_certificates(bundle.trusted)) <= 3


def test_an_authority_is_followed_up_and_forgotten() -> None:
    now, bundle = NOW, renewed(None, NAMES, NOW, SHORT)
    first = bundle.trusted
    for _ in range(60):
        now += timedelta(hours=2)
        bundle = renewed(bundle, NAMES, now, SHORT)
    assert first not in bundle.trusted


@pytest.mark.parametrize(
    "spoil",
    [
        lambda one: CertificateBundle(one.authority, b"nonsense", one.serving),
        lambda one: CertificateBundle(
            one.authority, one.trusted, KeyPair(one.serving.certificate, b"x")
        ),
        lambda one: CertificateBundle(
            one.authority, one.trusted, KeyPair(one.serving.certificate, one.authority.key)
        ),
        lambda one: CertificateBundle(
            one.authority, CertificateAuthority.create(NOW).pair.certificate, one.serving
        ),
    ],
    ids=["no-certificate", "no-key", "another-key", "another-authority"],
)
def test_parts_that_do_not_belong_together_are_not_used(
    spoil: Callable[[CertificateBundle], CertificateBundle],
) -> None:
    with pytest.raises(BundleError):
        checked(spoil(renewed(None, NAMES, NOW, DEFAULT_LIFETIMES)))


def test_keys_show_in_no_repr() -> None:
    bundle = renewed(None, NAMES, NOW, DEFAULT_LIFETIMES)
    assert "PRIVATE" not in repr(bundle)
    assert "PRIVATE" not in repr(bundle.serving)


def test_a_certificate_that_fails_leaves_the_one_before() -> None:
    bundle = renewed(None, NAMES, NOW, DEFAULT_LIFETIMES)
    context = server_tls()
    load_key_pair(context, bundle.serving)
    with pytest.raises(ssl.SSLError):
        load_key_pair(context, KeyPair(bundle.serving.certificate, bundle.authority.key))


# -- the Secret -----------------------------------------------------------------------------------


def secret_of(lifetimes: CertificateLifetimes = DEFAULT_LIFETIMES) -> SharedSecret:
    return SharedSecret("kube-system", "bayplan-webhook", NAMES, lifetimes)


async def data_of(client: Client) -> dict[str, str]:
    found = await client.get(SECRETS, "kube-system", "bayplan-webhook")
    return cast("dict[str, str]", found["data"])


@pytest.mark.virtual
async def test_replicas_share_one_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with VirtualLab(ClusterSpec(seed=1)) as lab:
        first, second = lab.client(), lab.client()
        proof = await secret_of().current(first)
        assert await secret_of().current(second) == proof
        assert base64.b64decode((await data_of(first))["tls.crt"]) == proof.pair.certificate
    assert "PRIVATE" not in caplog.text
    assert proof.pair.key.splitlines()[1].decode() not in caplog.text


@pytest.mark.virtual
async def test_who_comes_second_uses_what_the_first_wrote() -> None:
    async with VirtualLab(ClusterSpec(seed=1)) as lab:
        clients = [lab.client() for _ in range(5)]
        for hours in (0, 7, 60):
            await lab.run(until=hours * 3600)
            proofs = await asyncio.gather(*(secret_of(SHORT).current(one) for one in clients))
            assert len({proof.pair.certificate for proof in proofs}) == 1


@pytest.mark.virtual
@pytest.mark.parametrize(
    "spoilt", [None, {"tls.crt": "eHg="}, {"tls.key": "eHg="}, {"ca.crt": None}, {"tls.key": ""}]
)
async def test_a_secret_that_cannot_be_used_is_made_anew(spoilt: dict[str, Any] | None) -> None:
    async with VirtualLab(ClusterSpec(seed=1)) as lab:
        client = lab.client()
        await secret_of().current(client)
        if spoilt is None:
            made: Untyped = {"metadata": {"namespace": "kube-system", "name": "other"}, "data": {}}
            await client.create(made, SECRETS)
            source = SharedSecret("kube-system", "other", NAMES)
        else:
            name = "bayplan-webhook"
            await client.patch(SECRETS, "kube-system", name, change=merge({"data": spoilt}))
            source = secret_of()
        proof = await source.current(client)
        load_key_pair(server_tls(), proof.pair)
        assert await source.current(client) == proof


# -- files ----------------------------------------------------------------------------------------


@pytest.mark.virtual
async def test_files_are_read_as_they_are_now(tmp_path: Path) -> None:
    files = CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key")
    async with VirtualLab(ClusterSpec(seed=1)) as lab:
        client = lab.client()
        with pytest.raises(FileNotFoundError):
            await files.current(client)
        for _ in range(2):
            pair = renewed(None, NAMES, NOW, DEFAULT_LIFETIMES).serving
            files.certificate.write_bytes(pair.certificate)
            files.key.write_bytes(pair.key)
            proof = await files.current(client)
            assert (proof.pair, proof.trusted) == (pair, b"")
