"""The page of a report: opens in a real browser, asks nobody, and takes no name for markup."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser, sync_playwright

from bayplan.lab.measurement import RunMeasurements, ScalingEvent
from bayplan.lab.measurement.meter import FIGURES
from bayplan.lab.measurement.series import WITHIN, StartupTimes
from bayplan.lab.report.data import ReportOrigin, as_json, make_report, read_report
from bayplan.lab.report.page import as_page
from bayplan.lab.simulation.pool import RunFailure
from bayplan.lab.simulation.runspec import SimulationInputs
from tests.lab.simulation.runs import inputs, variant

pytestmark = [pytest.mark.whole, pytest.mark.xdist_group("report")]  # one browser for all
CHROMIUM = "/usr/bin/chromium"
EXAMPLE = Path(__file__).parents[3] / "examples" / "reports" / "attach-limit-reached.html"
HOSTILE = "</title><script>document.title='x'</script><img src=x onerror=alert(1)>\"'&"
POINTS = 60


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield made
        made.close()


def measured(cost: float, p99: float | None = 3.0) -> RunMeasurements:
    """A run of a cluster in which everything has a hostile name."""
    names = ("nodes/ready", "cost/rate", "cost/idle", "pods/running")
    series = {name: [cost] * POINTS for name in names}
    for family in ("waiting", "volumes", "limits", "share", "groups", "full"):
        series[f"{family}/{HOSTILE}"] = [1.0] * POINTS
    figures: dict[str, float | None] = dict.fromkeys(FIGURES, cost)
    figures["p99"] = p99
    return RunMeasurements(
        seconds=1800.0,
        series=series,
        figures=figures,
        startup=StartupTimes(pods=3, never_ran=1, within=[0.5] * len(WITHIN), quantiles={}),
        events=[ScalingEvent(time=1.0, what="added", group=HOSTILE, count=1, reason=HOSTILE)],
        events_omitted=0,
        digest="0" * 64,
    )


def hostile_page(tmp_path: Path) -> Path:
    other = msgspec.structs.replace(variant(name=HOSTILE), source=HOSTILE, gates=HOSTILE)
    asked: SimulationInputs = inputs(variant(), other)
    orders = asked.runs()
    results = [(one, measured(1.0 + number)) for number, one in enumerate(orders)]
    about = ReportOrigin(version="1", command=f"bayplan simulate {HOSTILE}")
    report = make_report(about, asked, results, [])
    path = tmp_path / "report.html"
    path.write_text(as_page(report, asked))
    return path


@pytest.mark.parametrize("width", [360, 1300])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_example_opens_without_a_complaint(browser: Browser, width: int, scheme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(EXAMPLE.as_uri())
    assert said == []
    assert asked == [EXAMPLE.as_uri()]
    assert page.locator("figure svg").count() > 10
    assert page.locator("table").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.close()


def test_names_are_shown_as_they_are_and_do_nothing(browser: Browser, tmp_path: Path) -> None:
    path = hostile_page(tmp_path)
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.goto(path.as_uri())
    assert said == []
    assert page.title().startswith("base against </title><script>")
    assert page.locator("script, img").count() == 0
    assert HOSTILE in (page.locator("thead").first.text_content() or "")
    page.close()


def test_a_seed_that_failed_counts_in_no_variant() -> None:
    asked = inputs(variant(), variant(name="other"), seeds=3)
    orders = asked.runs()
    failed = orders[1]
    results = [(one, measured(1.0)) for one in orders if one is not failed]
    about = ReportOrigin(version="1", command="c")
    report = make_report(about, asked, results, [RunFailure(failed, "killed")])
    assert report.seeds == [1, 3]
    assert all(len(one.figures["cost"].values) == 2 for one in report.variants)
    assert [(one.seed, one.reason) for one in report.failures] == [(2, "killed")]
    assert read_report(as_json(report)) == report
    assert "killed" in as_page(report, asked)


def test_a_report_of_nothing_says_so() -> None:
    asked = inputs(variant(), seeds=1)
    failures = [RunFailure(one, "no") for one in asked.runs()]
    report = make_report(ReportOrigin(version="1", command="c"), asked, [], failures)
    assert "All runs failed" in as_page(report, asked)
