"""Switching the gate owes a clean-up, which is warned of until `reset` has done it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.images.agent.image_gc_loop import (
    GateState,
    GateStateFile,
    UnreadableGateStateError,
    next_state,
)
from bayplan.images.agent.reset import ImageReset, select_pods, stale_images
from bayplan.images.credentials.pull_manager import CredentialVerification, ImagePullManager
from bayplan.images.credentials.records import PullKey, PullRecordFiles
from bayplan.images.runtime.objects import Image, ImageKey, ImageSpec
from bayplan.kube.pods import Pod
from tests.builders import make_pod
from tests.clocks import VirtualClock
from tests.images.in_memory_runtime import InMemoryRuntime
from tests.images.manager_fixture import ManagerFixture, pod_of

PROCESS = Image("sha256:2022", ("app:1",), size=5, handler="process")
DEFAULT = Image("sha256:linux", ("app:1",), size=7)
PAUSE = Image("sha256:pause", ("pause:1",), size=1, pinned=True)


def shelf_with(*images: Image) -> InMemoryRuntime:
    memory_runtime = InMemoryRuntime.of(images)
    memory_runtime.offers = {("app:1", image.handler): image for image in (PROCESS, DEFAULT)}
    return memory_runtime


class Workload:
    """The pods of a node; deleting one takes its containers from the runtime."""

    def __init__(self, memory_runtime: InMemoryRuntime, *pods: Pod) -> None:
        self.memory_runtime = memory_runtime
        self.pods = list(pods)
        self.deleted: list[str] = []

    async def pods_on(self, node: str) -> list[Pod]:
        return [pod for pod in self.pods if pod.spec.node_name == node]

    async def delete_pod(self, pod: Pod) -> None:
        self.deleted.append(pod.name)
        self.memory_runtime.in_use = set()


def reset(
    memory_runtime: InMemoryRuntime, folder: Path, workload: Workload | None = None
) -> ImageReset:
    clock = VirtualClock()
    pull_manager = ImagePullManager(PullRecordFiles(folder), CredentialVerification(), clock)
    return ImageReset(
        memory_runtime, pull_manager, GateStateFile.in_state_dir(folder), clock, workload, "n1"
    )


def owned_pod(name: str, runtime_class: str | None) -> Pod:
    pod = make_pod(name).owner("ReplicaSet", "rs").node("n1").obj()
    pod.spec.runtime_class_name = runtime_class
    return pod


def test_a_first_start_owes_nothing(tmp_path: Path) -> None:
    gate_file = GateStateFile(tmp_path / "gate.json")
    assert not gate_file.needs_clean_up
    assert not gate_file.record_start([DEFAULT, PROCESS], enabled=True).clean_up_owed


def test_on_off_on_owes_until_it_is_paid(tmp_path: Path) -> None:
    gate_file = GateStateFile(tmp_path / "gate.json")
    gate_file.record_start([PROCESS], enabled=True)
    assert gate_file.record_start([PROCESS], enabled=False).clean_up_owed
    assert gate_file.record_start([PROCESS], enabled=False).clean_up_owed, "a restart pays nothing"
    assert gate_file.record_start([PROCESS], enabled=True).clean_up_owed, (
        "switching back pays nothing"
    )
    gate_file.mark_cleaned_up()
    assert not gate_file.needs_clean_up
    assert not gate_file.record_start([PROCESS], enabled=True).clean_up_owed
    assert gate_file.record_start([DEFAULT], enabled=False).clean_up_owed


def test_a_switch_on_an_empty_node_owes_nothing(tmp_path: Path) -> None:
    gate_file = GateStateFile(tmp_path / "gate.json")
    gate_file.record_start([], enabled=True)
    assert not gate_file.record_start([PAUSE], enabled=False).clean_up_owed


def test_a_lost_ledger_with_handlers_images_and_the_gate_off_owes() -> None:
    assert next_state(None, [PROCESS], enabled=False).clean_up_owed
    assert not next_state(None, [DEFAULT], enabled=False).clean_up_owed


def test_a_broken_ledger_is_named(tmp_path: Path) -> None:
    path = tmp_path / "gate.json"
    path.write_text("{")
    with pytest.raises(UnreadableGateStateError, match=r"gate\.json"):
        GateStateFile(path).read()


@given(st.lists(st.booleans(), min_size=1, max_size=8))
def test_a_debt_exists_exactly_if_the_gate_was_ever_switched(starts: list[bool]) -> None:
    state: GateState | None = None
    for enabled in starts:
        state = next_state(state, [DEFAULT], enabled=enabled)
    assert state == GateState(starts[-1], len(set(starts)) > 1)


async def test_the_gate_on_off_on_with_the_clean_up_between(tmp_path: Path) -> None:
    memory_runtime = shelf_with(PAUSE)
    gate_file = GateStateFile.in_state_dir(tmp_path)
    fixture = ManagerFixture(memory_runtime, tmp_path)
    fixture.cluster.handlers = {"ws2022": "process"}
    pod = pod_of("app:1", runtime_class="ws2022")

    gate_file.record_start(await memory_runtime.list_images(), enabled=True)
    assert (await fixture.ready(pod)).key == PROCESS.key

    fixture.gate = False
    fixture.restart()
    assert gate_file.record_start(await memory_runtime.list_images(), enabled=False).clean_up_owed
    assert (await fixture.ready(pod)).key == DEFAULT.key
    assert set(memory_runtime.images) == {PAUSE.key, PROCESS.key, DEFAULT.key}
    report = await reset(memory_runtime, tmp_path).run()
    assert report.complete
    assert set(memory_runtime.images) == {PAUSE.key}
    assert report.removed == (PROCESS.key, DEFAULT.key)
    assert not gate_file.needs_clean_up
    assert (await fixture.ready(pod)).pulled

    fixture.gate = True
    fixture.restart()
    assert gate_file.record_start(await memory_runtime.list_images(), enabled=True).clean_up_owed
    assert (await reset(memory_runtime, tmp_path).run()).complete
    assert (await fixture.ready(pod)).key == PROCESS.key
    assert set(memory_runtime.images) == {PAUSE.key, PROCESS.key}


async def test_a_reset_restarts_the_pods_that_have_a_runtime_class(tmp_path: Path) -> None:
    memory_runtime = shelf_with(PROCESS, DEFAULT)
    memory_runtime.in_use = {PROCESS.key}
    workload = Workload(memory_runtime, owned_pod("classy", "ws2022"), owned_pod("plain", None))
    report = await reset(memory_runtime, tmp_path, workload).run()
    assert workload.deleted == ["classy"]
    assert report.complete
    assert not memory_runtime.images


async def test_what_a_pod_without_a_class_uses_stays_and_owes_nothing(tmp_path: Path) -> None:
    memory_runtime = shelf_with(PROCESS, DEFAULT)
    memory_runtime.in_use = {DEFAULT.key}
    plain = owned_pod("plain", None)
    plain.spec.containers[0].image = "app:1"
    gate_file = GateStateFile.in_state_dir(tmp_path)
    gate_file.record_start([PROCESS], enabled=True)
    gate_file.record_start([PROCESS], enabled=False)
    work = reset(memory_runtime, tmp_path, Workload(memory_runtime, plain))
    work.pull_manager.record_pull_intent(PullKey("app:1"))
    work.pull_manager.record_image_pulled(PullKey("app:1"), DEFAULT.key, None)
    report = await work.run()
    assert report.complete
    assert set(memory_runtime.images) == {DEFAULT.key}
    assert work.pull_manager.counts() == (0, 1), "who may use it is still known"
    assert not gate_file.needs_clean_up


async def test_the_records_of_what_is_gone_are_forgotten(tmp_path: Path) -> None:
    memory_runtime = shelf_with(PROCESS)
    work = reset(memory_runtime, tmp_path)
    work.pull_manager.record_pull_intent(PullKey("app:1", "process"))
    work.pull_manager.record_image_pulled(PullKey("app:1", "process"), PROCESS.key, None)
    assert isinstance(work.clock, VirtualClock)
    await work.clock.advance(1)
    assert (await work.run()).records_forgotten == 1
    assert work.pull_manager.counts() == (0, 0)


def test_a_pod_that_is_going_anyway_is_not_waited_for() -> None:
    going = make_pod("going").node("n1").runtime_class("ws2022").terminating().obj()
    chosen = select_pods([going], without_controller=False)
    assert (chosen.restart, chosen.leave) == ((), ())


def test_only_pinned_images_and_those_of_pods_that_stay_are_not_stale() -> None:
    plain = owned_pod("plain", None)
    plain.spec.containers[0].image = "docker.io/library/app:1"
    chosen = select_pods([plain], without_controller=False)
    default = replace(DEFAULT, tags=("docker.io/library/app:1",))
    process = replace(PROCESS, tags=("docker.io/library/app:1",))
    assert stale_images([default, process, PAUSE], chosen) == {PROCESS.key}


async def test_a_pod_that_would_not_come_back_is_left_alone(tmp_path: Path) -> None:
    bare = make_pod("bare").node("n1").obj()
    bare.spec.runtime_class_name = "ws2022"
    memory_runtime = shelf_with(PROCESS, DEFAULT)
    memory_runtime.in_use = {PROCESS.key}
    gate_file = GateStateFile.in_state_dir(tmp_path)
    gate_file.record_start([PROCESS], enabled=True)
    gate_file.record_start([PROCESS], enabled=False)
    workload = Workload(memory_runtime, bare)
    report = await reset(memory_runtime, tmp_path, workload).run()
    assert (workload.deleted, [pod.name for pod in report.pods.leave]) == ([], ["bare"])
    assert report.remaining == (PROCESS.key,)
    assert not report.complete
    assert gate_file.needs_clean_up, "what is still in use keeps the debt open"
    assert [pod.name for pod in select_pods([bare], without_controller=True).restart] == ["bare"]


async def test_a_removal_that_fails_keeps_the_debt_open(tmp_path: Path) -> None:
    memory_runtime = shelf_with(PROCESS)
    memory_runtime.stuck = {PROCESS.key}
    report = await reset(memory_runtime, tmp_path).run()
    assert report.failed == {PROCESS.key: "RemoveImage: UNKNOWN: device or resource busy"}
    assert not report.complete


async def test_images_that_stay_in_use_are_waited_for_but_not_for_ever(tmp_path: Path) -> None:
    memory_runtime = shelf_with(PROCESS)
    memory_runtime.in_use = {PROCESS.key}

    class Stubborn(Workload):
        async def delete_pod(self, pod: Pod) -> None:
            self.deleted.append(pod.name)

    work = reset(memory_runtime, tmp_path, Stubborn(memory_runtime, owned_pod("slow", "ws2022")))
    assert isinstance(work.clock, VirtualClock)
    report = await work.clock.run(work.run())
    assert report.remaining == (PROCESS.key,)
    assert work.clock.monotonic() == pytest.approx(60)


async def test_a_dry_run_of_the_reset_changes_nothing(tmp_path: Path) -> None:
    memory_runtime = shelf_with(PROCESS, DEFAULT)
    memory_runtime.in_use = {ImageKey(PROCESS.id)}
    report = await reset(memory_runtime, tmp_path).run(dry_run=True)
    assert (report.removed, report.remaining) == ((DEFAULT.key,), (PROCESS.key,))
    assert memory_runtime.removed == []
    assert len(memory_runtime.images) == 2


async def test_every_removal_names_its_handler(tmp_path: Path) -> None:
    memory_runtime = shelf_with(PROCESS, DEFAULT)
    await reset(memory_runtime, tmp_path).run()
    assert memory_runtime.removed == [ImageSpec(PROCESS.id, "process"), ImageSpec(DEFAULT.id)]
