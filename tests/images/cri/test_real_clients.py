"""Kubernetes' own CRI clients against our socket: crictl, and the CRI validation suite.

Neither is a Debian package; the tests run where they are on the PATH.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.images.parts.layouts import ImageBuilder, linux, tar_of
from tests.images.parts.registry import Registry
from tests.images.parts.service import CONFIG, Service, running_service, settings

pytestmark = pytest.mark.whole


# All of the suite that needs images alone and no containers.
IMAGE_SPECS = "Image Manager|RemoveImage|version info"
USERS = {
    "user-uid": "1002",
    "user-username": "www-data",
    "user-uid-group": "1003:users",
    "user-username-group": "www-data:www-data",
}


async def run(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


@pytest.mark.by_hand("crictl")
async def test_crictl_pulls_lists_inspects_and_removes(
    registry: Registry, service: Service
) -> None:
    builder = ImageBuilder()
    entries = [
        builder.entry(tar_of(("f", b"x")), platform=linux(cpu)) for cpu in ("amd64", "arm64")
    ]
    name = registry.push(builder, builder.index(*entries), "crictl:1")

    async def crictl(*arguments: str) -> str:
        endpoint = f"unix://{service.socket}"
        return await run("crictl", "-r", endpoint, "-i", endpoint, *arguments)

    assert "RuntimeName:  bayplan" in await crictl("version")
    image_id = (await crictl("pull", name)).strip().rpartition(" ")[2]
    assert image_id.removeprefix("sha256:")[:13] in await crictl("images", "--digests")
    inspected = await crictl("inspecti", name)
    status = json.loads(inspected[inspected.index("{") :])["status"]
    assert (status["id"], status["repoTags"]) == (image_id, [name])
    assert str(service.root) in await crictl("imagefsinfo")
    await crictl("rmi", name)
    assert name.rpartition(":")[0] not in await crictl("images")


def fill_for_critest(registry: Registry) -> None:
    """Push images under every name the suite asks for, to be found through a mirror."""
    names = ["test-image-latest", "test-image-tag:test", "test-image-tag:all"]
    names += [f"test-image-{number}" for number in (1, 2, 3)]
    contents = {name: name for name in names} | {
        f"test-image-tags:{tag}": "the same" for tag in (1, 2, 3)
    }
    for name, content in contents.items():
        push(registry, f"k8s-staging-cri-tools/{name}", content)
    for name, user in USERS.items():
        push(registry, f"k8s-staging-cri-tools/test-image-{name}", name, user)
    push(registry, "pause:3.9", "pause")


def push(registry: Registry, name: str, content: str, user: str = "") -> None:
    builder = ImageBuilder()
    image = builder.image(tar_of(("content", content.encode())), user=user)
    registry.push(builder, image, name)


@pytest.fixture
async def mirrored(registry: Registry, tmp_path: Path) -> AsyncIterator[Service]:
    hosts = tmp_path / "certs.d" / "_default" / "hosts.toml"
    hosts.parent.mkdir(parents=True)
    hosts.write_text(f'[host."http://{registry.host}"]\n')
    table = (
        f'\n[plugins."io.containerd.grpc.v1.cri".registry]\nconfig_path = "{hosts.parents[1]}"\n'
    )
    async with running_service(tmp_path / "store", settings(tmp_path, CONFIG + table)) as running:
        yield running


@pytest.mark.by_hand("critest")
async def test_the_validation_suites_image_half_passes(
    registry: Registry, mirrored: Service
) -> None:
    fill_for_critest(registry)
    endpoint = f"unix://{mirrored.socket}"
    output = await run(
        *("critest", "-runtime-endpoint", endpoint, "-image-endpoint", endpoint),
        *("-ginkgo.focus", IMAGE_SPECS, "-ginkgo.no-color"),
        # This one names a digest of published content, which is not ours to make.
        *("-ginkgo.skip", "with digest"),
    )
    counted = re.search(r"(\d+) Passed \| (\d+) Failed", output)
    assert counted is not None
    assert int(counted[1]) >= 10
    assert int(counted[2]) == 0
