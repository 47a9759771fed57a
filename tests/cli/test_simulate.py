"""`bayplan simulate`: reports that say the same twice, in words, JSON, CSV and a page."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path

import msgspec
import pytest

from bayplan.cli.main import run
from bayplan.lab.report.data import SimulationReport, read_report
from tests.lab.simulation.runs import DISK, OFF, SMALL

pytestmark = pytest.mark.whole


REPO = Path(__file__).parents[2]
EXAMPLE = REPO / "examples" / "reports" / "attach-limit-reached.json"


def simulated(*words: str) -> int:
    return run(["simulate", *words])


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    path = tmp_path / "cluster.yaml"
    path.write_bytes(SMALL)
    return str(path)


def test_the_example_is_what_its_command_gives(tmp_path: Path) -> None:
    """To the byte, but for the version; the figures are those of the story."""
    kept = EXAMPLE.read_bytes()
    words = shlex.split(read_report(kept).about.command)[2:]
    words[words.index("--report") + 1] = str(tmp_path / "again.html")
    words[0] = str(REPO / words[0])
    assert simulated(*words, "--json", str(tmp_path / "again.json")) == 0
    again = read_report((tmp_path / "again.json").read_bytes())
    assert _without_origin(again) == _without_origin(read_report(kept))
    _check_story(again)


def _without_origin(report: SimulationReport) -> bytes:
    about = msgspec.structs.replace(report.about, version="", command="")
    variants = [msgspec.structs.replace(one, source="") for one in report.variants]
    return msgspec.json.encode(msgspec.structs.replace(report, about=about, variants=variants))


def _check_story(report: SimulationReport) -> None:
    on, off = report.variants
    assert (on.name, off.name) == ("base", OFF)
    assert on.figures["nodesAdded"].values == [3.0] * len(report.seeds)
    assert on.figures["podsNeverRan"].max == 0
    slower = off.differences["p90"]
    assert slower.more == len(report.seeds)
    assert (slower.min or 0) > 60
    assert off.differences["podHoursWaiting"].more == len(report.seeds)
    for run_ in report.runs:
        added = [one for one in run_.events if one.time > 0]
        assert [one.count for one in added] == ([3] if run_.variant == "base" else [1, 1, 1])
        assert all(f"for volumes of {DISK}" in one.reason for one in added)


def test_however_many_processes_make_it_a_report_is_the_same(cluster: str, tmp_path: Path) -> None:
    made = []
    for jobs in ("1", "3"):
        json, page = tmp_path / f"{jobs}.json", tmp_path / "report.html"
        words = (cluster, "--for", "4m", "--seeds", "2", "--gate", OFF, "--jobs", jobs)
        assert simulated(*words, "--json", str(json), "--report", str(page)) == 0
        made.append((json.read_bytes(), page.read_bytes()))
    assert made[0] == made[1]


def test_csv_has_a_value_a_row(cluster: str, tmp_path: Path) -> None:
    folder = tmp_path / "csv"
    words = (cluster, "--for", "10m", "--points", "10", "--csv", str(folder))
    assert simulated(*words, "--set", "nodeGroups[workers].max=2") == 0
    with (folder / "series.csv").open() as stream:
        found = list(csv.DictReader(stream))
    running = [float(one["value"]) for one in found if one["series"] == "pods/running"]
    assert len(running) == 10
    assert found[0].keys() == {"variant", "seed", "time", "series", "value"}
    ready = [float(one["value"]) for one in found if one["series"] == "nodes/ready"]
    assert max(ready) <= 2
    with (folder / "summary.csv").open() as stream:
        figures = {one["figure"]: one["value"] for one in csv.DictReader(stream)}
    assert float(figures["podsCreated"]) > 0


def test_what_is_kept_is_not_made_again(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "work"
    words = (cluster, "--for", "60s", "--seeds", "2", "--work", str(work))
    assert simulated(*words) == 0
    first = capsys.readouterr().out
    (kept, _) = sorted(work.glob("run-*.json"))
    before = kept.stat().st_mtime_ns
    assert simulated(*words) == 0
    assert capsys.readouterr().out == first
    assert kept.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--for", "soon"), "--for: "),
        (("--for", "0s"), "--for 0s: from 1s"),
        (("--for", "1h", "--seeds", "0"), "--seeds 0: from 1 to 1000"),
        (("--for", "1h", "--jobs", "0"), "--jobs 0: must be from 1 to 256"),
        (("--for", "1h", "--points", "1"), "--points 1: must be from 10 to 2000"),
        (("--for", "1h", "--gate", "Nope=true"), "unknown feature gate 'Nope'"),
        (("--for", "1h", "--expander", "dearest"), "--expander dearest: "),
        (("--for", "1h", "--with", "cook"), "--with: unknown daemon 'cook'"),
        (("--for", "1h", "--set", "nodeGroups[x].max=1"), "--set nodeGroups[x]: there is no"),
        (
            ("--for", "1h", "--set", "nodeGroups[0].mx=1"),
            "nodeGroups[0].mx: unknown field",
        ),
        (("--for", "1h", "--compare-set", "seed"), "--compare-set 'seed': write it as"),
        (("--for", "1h", "--compare", "none.yaml"), "none.yaml: No such file"),
        (("--for", "1h", "--trace", "none.csv"), "none.csv: No such file"),
        (("--for", "1h", "--scale-time", "0"), "--scale-time 0: from 0.001"),
        (("--for", "1h", "--trace", "none.bpr"), "none.bpr: No such file"),
        (
            ("--for", "1h", "--record", "none/run.bpr"),
            "--record none/run.bpr: folder none does not exist",
        ),
        (
            ("--for", "1h", "--report", "none/page.html"),
            "--report none/page.html: folder none does not exist",
        ),
        (("--for", "1h", "--report", "."), "--report .: is a folder"),
        (
            ("--for", "1h", "--json", "none/all.json"),
            "--json none/all.json: folder none does not exist",
        ),
        (
            ("--for", "1h", "--csv", "/dev/null/all"),
            "--csv /dev/null/all: folder /dev/null does not exist",
        ),
        (("--for", "1h", "--on-cluster"), "--on-cluster: needs --image"),
        (
            ("--for", "1h", "--on-cluster", "--image", "i", "-n", "No!"),
            "--namespace No!: not a valid",
        ),
    ],
)
def test_bad_input_is_one_line_that_names_the_place(
    cluster: str, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulated(cluster, *words) == 2
    errors = capsys.readouterr().err
    assert said in errors
    assert "Traceback" not in errors


def test_a_cluster_that_the_server_refuses_is_told_with_its_seed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text("workloads: [{manifest: {apiVersion: odd/v1, kind: Odd, metadata: {name: x}}}]")
    assert simulated(str(path), "--for", "60s") == 1
    assert "base, seed 1: failed: " in capsys.readouterr().err


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """A short run that is made once and kept."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "cluster.yaml").write_bytes(SMALL)
    return (str(folder / "cluster.yaml"), "--for", "1s", "--work", str(folder / "work"))


@pytest.mark.xdist_group("full-disk")
@pytest.mark.parametrize("option", ["--json", "--report"])
def test_a_full_disk_is_said_with_the_name_of_the_file(
    made: tuple[str, ...], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulated(*made, option, "/dev/full") == 74
    assert "/dev/full: No space left on device" in capsys.readouterr().err
