"""A recording is played, and explained as it is shown, whatever the clock says in between.

Moments are told in whole seconds, and the slider in tenths: a pod may come, wait and be gone
between two of them, and a jump is on its way for a while.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from bayplan.recordings import RecordingWriter, identity_of
from tests.builders import make_node, make_pod
from tests.ui.browser.conftest import Opened
from tests.ui.browser.processes import Command, page_of
from tests.ui.browser.windows import Window

pytestmark = pytest.mark.whole


START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SELECTED = "sel=pod/shop/web"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page of a recording in which a pod comes late in a second, waits for one reason, then
    for another, and is gone.
    """
    file = tmp_path_factory.mktemp("recording") / "waits.bpr"
    record(file)
    command = Command("ui", str(file))
    yield page_of(command)
    command.stop()


def record(file: Path) -> None:
    pod = make_pod("web", "shop").cpu("8").obj()
    node = make_node("n1").capacity(cpu="4", memory="8Gi", pods=10)
    with RecordingWriter(file, name="test", start=START) as writer:
        writer.record(0.0, node.obj())
        writer.flush()
        writer.record(3.95, pod)
        writer.record(20.5, node.unschedulable().obj())
        writer.record_deletion(40.5, identity_of(pod))
        writer.mark(60.0)


def explanation(window: Window) -> Locator:
    return window.page.get_by_role("region", name="Explanation")


def test_a_moment_within_a_second_is_explained_as_it_is_shown(url: str, opened: Opened) -> None:
    window = opened(f"{url}#/nodes?at=3.97&{SELECTED}")
    expect(explanation(window)).to_contain_text("Insufficient cpu")


def test_a_pod_that_comes_while_a_recording_is_played_is_explained(
    url: str, opened: Opened
) -> None:
    window = opened(f"{url}#/nodes?at=2&{SELECTED}")
    expect(window.details).to_contain_text(
        "pod shop/web does not exist at this time: it was deleted, or not created yet."
    )
    window.page.get_by_role("button", name="Play").click()
    expect(explanation(window)).to_contain_text("Insufficient cpu")


def test_keys_play_a_recording_pause_it_and_go_back(url: str, opened: Opened) -> None:
    window = opened(f"{url}#/nodes?at=2&{SELECTED}")
    bar = window.page.get_by_role("region", name="Recording")
    play, pause = (bar.get_by_role("button", name=name) for name in ("Play", "Pause"))
    expect(play).to_be_visible()
    window.page.locator("main").focus()
    window.page.keyboard.press(" ")
    expect(pause).to_be_visible()
    window.page.keyboard.press(" ")
    expect(play).to_be_visible()
    window.page.keyboard.press(" ")
    expect(pause).to_be_visible()
    bar.get_by_label("Speed").select_option("300")
    expect(play).to_be_visible()
    expect(bar.locator("output")).to_have_text("1:00 / 1:00")
    expect(window.details).to_contain_text(
        "pod shop/web does not exist at this time: it was deleted, or not created yet."
    )
    window.page.locator("main").focus()
    window.page.keyboard.press(",")
    expect(window.page).to_have_url(re.compile(r"at=50\b"))
    window.page.keyboard.press(".")
    expect(window.page).to_have_url(re.compile(r"at=60\b"))


def test_a_jump_is_explained_once_it_is_made(url: str, opened: Opened) -> None:
    window = opened(f"{url}#/nodes?at=10&{SELECTED}")
    slider = window.page.get_by_role("slider")
    expect(explanation(window)).to_contain_text("Insufficient cpu")
    slider.fill("30")
    expect(explanation(window)).to_contain_text("unschedulable")
    slider.fill("50")
    expect(window.details).to_contain_text(
        "pod shop/web does not exist at this time: it was deleted, or not created yet."
    )
