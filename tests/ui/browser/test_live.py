"""A cluster that runs: its changes are seen as they happen, and a recording of them is played.

One story for all: a simulated cluster with our scheduler in it, a page that follows it, and a
recording that is made meanwhile.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config
from playwright.sync_api import expect

from bayplan.recordings import Recording, RecordingError
from tests.patience import PATIENCE
from tests.ui.browser.conftest import Opened, Started
from tests.ui.browser.processes import Command, page_of

pytestmark = pytest.mark.whole


STORY = Path(__file__).with_name("story.yaml")


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster that places pods, with its kubeconfig."""
    path = tmp_path_factory.mktemp("story") / "kubeconfig"
    up = Command("up", "-f", str(STORY), "--with", "scheduler", "--kubeconfig", str(path))
    up.says("(KUBECONFIG)")
    yield path
    up.stop()


@pytest.fixture
def core(kubeconfig: Path) -> Iterator[Any]:
    """The official client, on that cluster."""
    with config.new_client_from_config(str(kubeconfig)) as api:  # type: ignore[no-untyped-call]
        yield client.CoreV1Api(api)


def pod(name: str, claim: str = "", cpu: str = "500m") -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": "main",
        "image": "registry.example/app:1",
        "resources": {"requests": {"cpu": cpu}},
    }
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    return {"metadata": {"name": name}, "spec": {"containers": [container], "volumes": volumes}}


def claim(name: str) -> dict[str, Any]:
    asks = {"requests": {"storage": "1Gi"}}
    return {
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": asks},
    }


def test_pods_are_seen_as_they_come_wait_and_go(
    kubeconfig: Path, core: Any, started: Started, opened: Opened
) -> None:
    window = opened(page_of(started("ui", "--kubeconfig", kubeconfig)) + "#/nodes")
    expect(window.status).to_contain_text("live")
    rows = window.page.get_by_role("table", name="Nodes").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="0 of 2 attach slots in use")).to_have_count(2)

    for i in range(5):
        core.create_namespaced_persistent_volume_claim("default", claim(f"data-{i}"))
        core.create_namespaced_pod("default", pod(f"ledger-{i}", f"data-{i}"))
    expect(rows.filter(has_text="2 of 2 attach slots in use")).to_have_count(2)

    window.page.get_by_role("navigation", name="Views").get_by_role("link", name="Pending").click()
    pods = window.page.locator("section.cause.volumes a.pod-class")
    expect(pods).to_be_visible()
    pods.click()
    explanation = window.page.get_by_role("region", name="Explanation")
    expect(explanation).to_contain_text("exceed max volume count")

    waits = window.page.locator(".details a.ref").last.inner_text()
    core.delete_namespaced_pod(waits.rpartition("/")[2] or waits, "default")
    expect(window.page.locator("main")).to_contain_text("No pending pods")


def test_a_recording_is_played_back_and_forth(
    kubeconfig: Path, core: Any, started: Started, opened: Opened, tmp_path: Path
) -> None:
    file = tmp_path / "story.bpr"
    record = started("record", "--kubeconfig", kubeconfig, "-o", file)
    recorded(file, bool)
    core.create_namespaced_pod("default", pod("replayed"))
    recorded(file, lambda keys: "default/replayed" in keys)
    record.stop()

    window = opened(page_of(started("ui", file)) + "#/nodes?at=0&sel=pod/default/replayed")
    bar = window.page.get_by_role("region", name="Recording")
    slider = bar.get_by_role("slider")
    expect(slider).to_be_visible()
    expect(window.status).to_contain_text("recording")
    expect(window.details).to_contain_text(
        "pod default/replayed does not exist at this time: it was deleted, or not created yet."
    )
    there = window.details.get_by_role("heading", name="default/replayed")

    slider.focus()
    window.page.keyboard.press("End")
    expect(there).to_be_visible()
    expect(window.page).to_have_url(re.compile(r"at=\d"))
    window.page.keyboard.press("Home")
    expect(there).to_have_count(0)

    bar.get_by_label("Speed").select_option("20")
    window.page.locator("main").focus()
    window.page.keyboard.press(" ")
    expect(there).to_be_visible()
    expect(bar.get_by_role("button", name="Play")).to_be_visible()


def recorded(file: Path, holds: Callable[[set[str]], bool]) -> None:
    """Wait until something holds of the objects in a recording that is being made."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with suppress(FileNotFoundError, RecordingError), Recording(file) as recording:
            if holds({one.key for one in recording.state_at(recording.seconds).objects}):
                return
        time.sleep(0.05)
    raise AssertionError(f"{file} never came to that")
