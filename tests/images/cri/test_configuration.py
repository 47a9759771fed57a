"""The configuration file, references and credentials, read strictly."""

import base64
import json
from pathlib import Path

import pytest

from bayplan.base.flowcontrol import RetryPolicy
from bayplan.images.handlers import UnknownHandlerError
from bayplan.images.platforms import Isolation, Platform
from bayplan.images.registry.credentials import (
    Keyring,
    read_docker_config,
    read_legacy_docker_config,
)
from bayplan.images.registry.errors import (
    MalformedReferenceError,
    Retrier,
    TransientError,
    image_to_pull,
    parse_retry_after,
)
from bayplan.images.registry.hosts import is_loopback
from tests.images.parts.service import HOST, settings

DIGEST = "sha256:" + "a" * 64


def test_a_name_that_is_none_is_a_pull_that_fails() -> None:
    with pytest.raises(MalformedReferenceError, match="image name 'Upper': the repo"):
        image_to_pull("Upper")


def test_only_this_machine_speaks_plain_http() -> None:
    ours = ["localhost", "localhost:5000", "127.0.0.1:5000", "127.9.9.9", "[::1]:5000"]
    assert all(map(is_loopback, ours))
    assert not any(map(is_loopback, ["localhost.example", "10.0.0.1:5000", "registry"]))


SEED = """
[plugins."io.containerd.grpc.v1.cri".containerd]
  default_runtime_name = "runhcs-wcow-process"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runhcs-wcow-process]
    base_runtime_spec = ""
    container_annotations = ["io.microsoft.container.*"]
    runtime_type = "io.containerd.runhcs.v1"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runhcs-wcow-process.guest_platform]
      Architecture = "amd64"
      OS = "windows"
      OSFeatures = []
      OSVersion = "10.0.20348"
      Variant = ""
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runhcs-wcow-process.options]
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.hypervisor]
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.hypervisor.options]
      SandboxIsolation = 1
"""


def test_a_containerd_configuration_gives_handlers_and_platforms(tmp_path: Path) -> None:
    handlers = settings(tmp_path, SEED).handlers
    process = handlers.get("").matcher
    assert process.platform == Platform(os="windows", architecture="amd64", os_version="10.0.20348")
    assert process.isolation is Isolation.PROCESS
    hypervisor = handlers.get("hypervisor").matcher
    assert (hypervisor.platform, hypervisor.isolation) == (HOST, Isolation.HYPERV)
    assert handlers.names() == ["runhcs-wcow-process", "hypervisor"]
    assert handlers.cri_name("runhcs-wcow-process") == ""
    with pytest.raises(UnknownHandlerError, match="runhcs-wcow-process, hypervisor"):
        handlers.get("runc")


def test_the_third_version_of_the_file_is_understood(tmp_path: Path) -> None:
    text = """
version = 3
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
[plugins."io.containerd.cri.v1.images"]
  max_concurrent_downloads = 5
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "registry.example/pause:3.10"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "/etc/one:/etc/two"
  [plugins."io.containerd.cri.v1.images".runtime_platforms.runc]
    platform = "windows(10.0.20348)/amd64"
    snapshotter = ""
"""
    found = settings(tmp_path, text)
    assert found.downloads == 5
    assert str(found.handlers.get("").matcher.platform) == "windows(10.0.20348)/amd64"
    assert found.pinned == {"registry.example/pause:3.10"}
    assert found.hosts_directory == Path("/etc/one")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (SEED.replace('OSVersion = "10.0.20348"', 'OSVersion = "ltsc"'), "runhcs-wcow-process"),
        (SEED.replace('Architecture = "amd64"', "Architecture = 64"), "guest_platform"),
        (SEED.replace('default_runtime_name = "r', 'default_runtime_name = "x'), "default"),
        ('[plugins."io.bayplan.images"]\nunknown = 1', "unknown"),
        ('[plugins."io.bayplan.images"]\npinned_images = ["A B"]', "pinned"),
        ('[plugins."io.containerd.grpc.v1.cri"]\nmax_concurrent_downloads = -1', "downloads"),
        ("not toml", "config.toml"),
        (
            '[plugins."io.containerd.cri.v1.images".runtime_platforms.x]\nplatform = "linux/386"',
            "'x'",
        ),
    ],
)
def test_a_bad_configuration_is_named(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(ValueError, match=place):
        settings(tmp_path, text)


def docker_config(**auths: str) -> bytes:
    encoded = {
        key: {"auth": base64.b64encode(f"user:{password}".encode()).decode()}
        for key, password in auths.items()
    }
    return json.dumps({"auths": encoded}).encode()


def test_the_most_specific_key_comes_first() -> None:
    keys = {
        "quay.io": "1",
        "https://quay.io/team/": "2",
        "quay.io/team/app": "3",
        "*.example.com": "4",
        "https://index.docker.io/v1/": "5",
    }
    ring = Keyring.of(read_docker_config(docker_config(**keys), "secret"))

    def passwords(repository: str) -> list[str]:
        return [found.password for found in ring.lookup(*repository.split("/", 1))]

    assert passwords("quay.io/team/app") == ["3", "2", "1"]
    assert passwords("quay.io/teams/app") == ["1"]
    assert passwords("a.example.com/x") == ["4"]
    assert passwords("a.b.example.com/x") == []
    assert passwords("docker.io/library/busybox") == ["5"]


def test_a_legacy_configuration_has_no_auths_around() -> None:
    data = b'{"quay.io": {"username": "ann", "password": "pw"}}'
    (entry,) = read_legacy_docker_config(data, "secret")
    assert (entry[0], entry[1].username, entry[1].password) == ("quay.io", "ann", "pw")


@pytest.mark.parametrize(
    "data",
    [
        b"s3cret",
        b'{"auths": {"x": {"auth": "s3cret"}}}',
        b'{"auths": ["s3cret"]}',
        b'{"auths": {"x": {"auth": "czNjcmV0"}}}',
        b" " * 2_000_000,
    ],
)
def test_a_bad_docker_configuration_is_named_without_its_secrets(data: bytes) -> None:
    with pytest.raises(ValueError, match="ns/secret") as failure:
        read_docker_config(data, "ns/secret")
    assert "s3cret" not in str(failure.value)


async def test_waits_double_and_the_servers_word_wins() -> None:
    waits: list[float] = []
    answers = iter([None, None, 7.0, None])

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def stumble() -> str:
        try:
            raise TransientError("busy", next(answers))
        except StopIteration:
            return "done"

    policy = RetryPolicy(attempts=9, first_wait=1.0, longest_wait=60.0)
    assert await Retrier(policy, sleep, lambda: 0.0).run(stumble) == "done"
    assert waits == [1.0, 2.0, 7.0, 8.0]


def test_retry_after_is_seconds_or_a_date() -> None:
    assert parse_retry_after("120", 0) == 120
    assert parse_retry_after("Thu, 01 Jan 1970 00:02:00 GMT", 60) == 60
    assert parse_retry_after("Thu, 01 Jan 1970 00:00:00 GMT", 60) == 0
    assert parse_retry_after("soon", 0) is None
    assert parse_retry_after(None, 0) is None
