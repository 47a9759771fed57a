"""A runtime at its worst, and a cluster that cannot be asked: nothing is lost or hidden."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bayplan.base.flowcontrol import TokenBucket
from bayplan.images.manager.errors import pull_error
from bayplan.images.manager.manager import ImageWaiting
from bayplan.images.manager.pulls import ImagePuller, PullFailedError, PullSlots
from bayplan.images.runtime.objects import (
    Image,
    ImageKey,
    ImageSpec,
    PodIdentity,
    RegistryAuth,
    RuntimeCallError,
)
from tests.clocks import VirtualClock
from tests.images.in_memory_runtime import InMemoryRuntime
from tests.images.manager_fixture import ManagerFixture, pod_of

PROCESS = Image("sha256:2022", ("app:1",), size=5, handler="process")
HYPERV = Image("sha256:2019", ("app:1",), size=6, handler="hyperv")
DEFAULT = Image("sha256:linux", ("app:1",), size=7)


@pytest.fixture
def memory_runtime() -> InMemoryRuntime:
    offers = {("app:1", image.handler): image for image in (PROCESS, HYPERV, DEFAULT)}
    return InMemoryRuntime(offers=offers)


@pytest.fixture
async def fixture(memory_runtime: InMemoryRuntime, tmp_path: Path) -> ManagerFixture:
    fixture = ManagerFixture(memory_runtime, tmp_path)
    fixture.cluster.handlers = {"ws2022": "process", "ws2019": "hyperv"}
    return fixture


async def test_two_runtime_classes_get_two_images_of_one_name(fixture: ManagerFixture) -> None:
    one = await fixture.ready(pod_of("app:1", "one", runtime_class="ws2022"))
    other = await fixture.ready(pod_of("app:1", "other", runtime_class="ws2019"))
    assert (one.key, other.key) == (PROCESS.key, HYPERV.key)
    assert (await fixture.ready(pod_of("app:1", "plain"))).key == DEFAULT.key


async def test_an_image_of_another_handler_does_not_count_as_present(
    fixture: ManagerFixture,
) -> None:
    await fixture.ready(pod_of("app:1", "one", runtime_class="ws2022"))
    outcome = await fixture.waiting(
        pod_of("app:1", "other", runtime_class="ws2019", policy="Never")
    )
    assert outcome.reason == "ErrImageNeverPull"


async def test_the_runtime_is_told_the_handler_and_the_name_as_written(
    fixture: ManagerFixture, memory_runtime: InMemoryRuntime
) -> None:
    pod = pod_of("app:1", runtime_class="ws2022")
    pod.metadata.annotations = {"team": "a"}
    await fixture.ready(pod)
    assert set(map(repr, memory_runtime.asked)) == {
        repr(ImageSpec("app:1", "process", {"team": "a"}, "app:1"))
    }


async def test_a_missing_runtime_class_is_an_error_that_names_it(fixture: ManagerFixture) -> None:
    outcome = await fixture.waiting(pod_of("app:1", runtime_class="no-such-class"))
    assert outcome == ImageWaiting(
        "CreatePodSandboxError", 'RuntimeClass "no-such-class" not found'
    )
    assert fixture.cluster.reasons() == ["FailedCreatePodSandBox"]


async def test_a_cluster_that_cannot_be_asked_is_not_a_missing_class(
    fixture: ManagerFixture,
) -> None:
    fixture.cluster.away = True
    outcome = await fixture.waiting(pod_of("app:1", runtime_class="ws2022"))
    assert "connection refused" in outcome.message
    fixture.cluster.away = False
    assert (await fixture.ready(pod_of("app:1", runtime_class="ws2022"))).key == PROCESS.key


async def test_with_the_gate_off_no_class_is_looked_up_and_no_handler_sent(
    fixture: ManagerFixture, memory_runtime: InMemoryRuntime
) -> None:
    fixture.gate = False
    fixture.restart()
    outcome = await fixture.ready(pod_of("app:1", runtime_class="ws2022"))
    assert outcome.key == ImageKey("sha256:linux")
    assert fixture.cluster.asked == []
    assert {spec.handler for spec in memory_runtime.asked} == {""}


async def test_a_runtime_that_cannot_say_is_an_inspect_error(
    fixture: ManagerFixture, memory_runtime: InMemoryRuntime
) -> None:
    memory_runtime.broken = "ImageStatus"
    outcome = await fixture.waiting(pod_of("app:1"))
    assert outcome.reason == "ImageInspectError"
    assert fixture.cluster.reasons() == ["InspectFailed"]


async def test_a_pull_beyond_the_rate_fails_and_backs_off(fixture: ManagerFixture) -> None:
    fixture.bucket = TokenBucket(qps=1, burst=1)
    fixture.restart()
    await fixture.ready(pod_of("app:1", "one"))
    refused = await fixture.waiting(pod_of("app:1", "other", policy="Always"))
    assert (refused.reason, refused.message) == ("ErrImagePull", "pull QPS exceeded")
    await fixture.clock.advance(10)
    assert (await fixture.ready(pod_of("app:1", "other", policy="Always"))).pulled


@pytest.mark.parametrize("reason", ["RegistryUnavailable", "SignatureValidationFailed"])
def test_special_pull_errors_are_known_by_their_first_word(reason: str) -> None:
    error = pull_error("app:1", f"{reason}: the details")
    assert error.reason == reason
    assert error.message.endswith(": the details")


class HangingRuntime(InMemoryRuntime):
    """A runtime whose pulls never end."""

    def __init__(self) -> None:
        super().__init__()
        self.pulling = asyncio.Event()

    async def pull_image(
        self, spec: ImageSpec, auth: RegistryAuth | None, pod: PodIdentity | None
    ) -> str:
        self.pulling.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


async def test_a_cancelled_pull_is_closed(tmp_path: Path) -> None:
    runtime = HangingRuntime()
    fixture = ManagerFixture(runtime, tmp_path)
    task = asyncio.ensure_future(fixture.ensure(pod_of("app:1", policy="Always")))
    await runtime.pulling.wait()
    assert fixture.manager.pull_manager.counts() == (1, 0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert fixture.manager.pull_manager.counts() == (0, 0)


def watched(runtime: InMemoryRuntime, clock: VirtualClock, samples: list[object]) -> ImagePuller:
    async def progress() -> object:
        sample = samples.pop(0) if len(samples) > 1 else samples[0]
        if isinstance(sample, Exception):
            raise sample
        return sample

    return ImagePuller(runtime, clock, PullSlots(), TokenBucket(qps=0, burst=0), progress, 100)


async def test_a_pull_without_progress_is_ended() -> None:
    clock = VirtualClock()
    puller = watched(HangingRuntime(), clock, [1, 2, 3])
    with pytest.raises(PullFailedError, match="no progress for 100 s"):
        await clock.run(puller.pull(ImageSpec("app:1"), [], PodIdentity()))
    assert clock.monotonic() == pytest.approx(120)


async def test_a_disk_that_cannot_be_asked_does_not_end_a_pull() -> None:
    clock = VirtualClock()
    away = RuntimeCallError("ImageFsInfo", "UNAVAILABLE", "away")
    puller = watched(HangingRuntime(), clock, [away] * 50 + [1])
    with pytest.raises(PullFailedError, match="no progress"):
        await clock.run(puller.pull(ImageSpec("app:1"), [], PodIdentity()))
    assert clock.monotonic() > 500


async def test_a_pull_that_ends_is_not_watched_any_more(memory_runtime: InMemoryRuntime) -> None:
    clock = VirtualClock()
    pulled = await watched(memory_runtime, clock, [1]).pull(ImageSpec("app:1"), [], PodIdentity())
    assert (pulled.key.id, clock.sleeping) == ("sha256:linux", 0)
