"""Deprecated names of figures, series and events: written beside the new ones, and read."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bayplan.lab.measurement import RunMeasurements, ScalingEvent
from bayplan.lab.measurement.meter import FIGURES
from bayplan.lab.measurement.series import WITHIN, StartupTimes
from bayplan.lab.report.data import (
    ReportOrigin,
    SimulationReport,
    as_json,
    make_report,
    read_report,
)
from bayplan.lab.report.tables import write_csv
from bayplan.lab.simulation.runspec import RunResults, encode
from tests.lab.simulation.runs import inputs, run_spec, variant


def measured() -> RunMeasurements:
    return RunMeasurements(
        seconds=1800.0,
        series={"scaling/added": [2.0] * 60, "scaling/removed": [1.0] * 60},
        figures=dict.fromkeys(FIGURES, 2.0),
        startup=StartupTimes(pods=3, never_ran=1, within=[0.5] * len(WITHIN), quantiles={}),
        events=[
            ScalingEvent(time=1.0, what="added", group="g", count=2),
            ScalingEvent(time=9.0, what="removed", group="g", count=1),
        ],
        events_omitted=0,
        digest="0" * 64,
    )


def report() -> SimulationReport:
    asked = inputs(variant(), variant(name="other"), seeds=1)
    results = [(one, measured()) for one in asked.runs()]
    return make_report(ReportOrigin(version="1", command="c"), asked, results, [])


def with_old_names_only(document: bytes) -> bytes:
    """The document as the version before wrote it."""
    for new, old in (("nodesAdded", "nodesBought"), ("scaling/added", "scaling/bought")):
        document = document.replace(f'"{new}"'.encode(), f'"{old}"'.encode())
    return document.replace(b'"what":"added"', b'"what":"bought"')


def test_json_has_both_names() -> None:
    written: Any = json.loads(as_json(report()))
    for one in written["variants"]:
        assert one["figures"]["nodesBought"] == one["figures"]["nodesAdded"]
        assert one["series"]["scaling/bought"] == one["series"]["scaling/added"]
        assert list(one["figures"]) == sorted(one["figures"])
    assert written["variants"][1]["differences"]["nodesBought"]["same"] == 1
    added, removed = written["runs"][0]["events"]
    assert (added["what"], added["deprecatedWhat"]) == ("added", "bought")
    assert "deprecatedWhat" not in removed


def test_the_old_names_are_the_only_difference_in_json() -> None:
    plain = json.loads(msgspec.json.encode(report()))
    written: Any = json.loads(as_json(report()))
    for one in written["variants"]:
        del one["figures"]["nodesBought"], one["series"]["scaling/bought"]
        one["differences"].pop("nodesBought", None)
    for run in written["runs"]:
        run["events"][0].pop("deprecatedWhat")
    assert written == plain


def test_reports_are_read_with_new_old_and_both_names() -> None:
    made = report()
    plain = msgspec.json.encode(made)
    old = with_old_names_only(plain)
    assert b"bought" in old
    assert read_report(plain) == read_report(old) == read_report(as_json(made)) == made


def test_stored_results_are_read_with_old_names(tmp_path: Path) -> None:
    results, run = RunResults(tmp_path, "1"), run_spec(variant())
    results.path(run).write_bytes(with_old_names_only(encode(measured())))
    assert results.find(run) == measured()


@pytest.mark.parametrize("data", [b"[]", b'{"variants": 1, "runs": [1], "events": {}}', b"1", b"{"])
def test_what_is_no_report_is_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_report(data)
    results, run = RunResults(tmp_path, "1"), run_spec(variant())
    results.path(run).write_bytes(data)
    assert results.find(run) is None


def test_csv_has_both_names(tmp_path: Path) -> None:
    write_csv(tmp_path, [(run_spec(variant()), measured())])
    series = rows(tmp_path / "series.csv")
    old = [one["value"] for one in series if one["series"] == "scaling/bought"]
    assert (
        old == [one["value"] for one in series if one["series"] == "scaling/added"] == ["2.0"] * 60
    )
    figures = {one["figure"]: one["value"] for one in rows(tmp_path / "summary.csv")}
    assert figures["nodesBought"] == figures["nodesAdded"] == "2.0"
    events = [(one["what"], one["deprecatedWhat"]) for one in rows(tmp_path / "events.csv")]
    assert events == [("added", "bought"), ("removed", "removed")]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as stream:
        return list(csv.DictReader(stream))
