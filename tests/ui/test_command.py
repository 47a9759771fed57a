"""`bayplan ui` and `bayplan record`, as they are called."""

from __future__ import annotations

import asyncio
import json
import re
import resource
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

from bayplan.cli.main import run
from bayplan.cli.options.page import serving
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.kube.codec import encode
from bayplan.recordings import Recording
from tests.builders import make_node, make_pod
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


EXAMPLE = "examples/cluster"


def served(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bayplan", "ui", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    found = re.fullmatch(r"page: (http://\S+)\n", process.stdout.readline())
    assert found is not None
    return found[1]


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE)
    return process.returncode, errors


def test_a_dump_is_served_until_it_is_told_to_stop() -> None:
    with served("-f", EXAMPLE, "--groups", "examples/groups.yaml") as process:
        with urllib.request.urlopen(f"{address(process)}api/state") as answer:
            state = json.load(answer)
        code, errors = ended(process)
    assert len(state["tables"]["nodes"]["rows"]) == 8
    assert (code, errors) == (0, "")


def test_what_is_served_to_others_needs_the_token_that_is_printed() -> None:
    with served("-f", EXAMPLE, "--listen", "0.0.0.0:0") as process:
        url = address(process)
        assert re.fullmatch(r"http://0\.0\.0\.0:\d+/\?token=[\w-]{32}", url)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{url.partition('?')[0]}api/state")
        code, errors = ended(process)
    assert (code, errors) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ui", "-f", "nowhere.json"], "nowhere.json"),
        (["ui", "nowhere.bpr"], "nowhere.bpr: No such file"),
        (["ui", "pyproject.toml"], "not a recording"),
        (["ui", "r.bpr", "-f", EXAMPLE], "give only one of"),
        (["ui", "-f", EXAMPLE, "--listen", "here"], "must be ADDRESS:PORT"),
        (["ui", "-f", EXAMPLE, "--groups", "nowhere.yaml"], "nowhere.yaml"),
        (["ui", "-f", EXAMPLE, "--token-file", "nowhere"], "--token-file nowhere"),
        (["ui", "-f", EXAMPLE, "--listen", "203.0.113.1:80"], "--listen 203.0.113.1:80"),
        (["ui", "--kubeconfig", "nowhere"], "nowhere"),
        (["record", "--most", "lots"], "--most lots"),
        (["record", "--for", "soon"], "--for"),
        (["record", "--kubeconfig", "nowhere"], "nowhere"),
        (["up", "-f", "examples/day.yaml", "--record", "nowhere/r.bpr"], "--record nowhere/r.bpr"),
    ],
)
def test_what_is_asked_wrongly_is_said_in_a_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    errors = capsys.readouterr().err
    assert said in errors
    assert "Traceback" not in errors


def test_a_token_is_long_enough_and_guards_this_machine_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "token"
    file.write_text("short\n")
    assert run(["ui", "-f", EXAMPLE, "--token-file", str(file)]) == 2
    assert "at least 16 characters" in capsys.readouterr().err
    file.write_text("a-token-that-is-long-enough\n")
    assert serving("127.0.0.1:0", file).guard.token == "a-token-that-is-long-enough"
    assert serving("127.0.0.1:0", None).guard.token == ""
    assert serving("0.0.0.0:0", None).guard.token
    assert serving("[::1]:0", None).guard.token == ""


async def test_a_live_cluster_is_recorded_for_a_while_however_long_it_takes_to_answer(
    tmp_path: Path,
) -> None:
    kubeconfig, file = tmp_path / "kubeconfig", tmp_path / "r.bpr"
    async with ApiServer(ServerConfig(kubeconfig=kubeconfig)):
        command = ["record", "--kubeconfig", str(kubeconfig), "-o", str(file), "--for", "1ms"]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bayplan", *command, stdout=-1, stderr=-1
        )
        out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert (process.returncode, err) == (0, b"")
    assert out.decode().startswith(f"{file}: ")
    with Recording(file) as recording:
        assert recording.state_at(0.0).objects
        assert recording.truncated_bytes == 0


def test_a_virtual_run_is_recorded_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story, file = "examples/stories/3-from-zero.yaml", tmp_path / "r.bpr"
    crew = ["--with", "scheduler,autoscaler", "--virtual", "--for", "20m"]
    assert run(["up", "-f", story, *crew, "--record", str(file)]) == 0
    with_record = capsys.readouterr().out
    assert run(["up", "-f", story, *crew]) == 0
    assert _digest(with_record) == _digest(capsys.readouterr().out), "recording changes nothing"
    with Recording(file) as recording:
        assert recording.seconds == pytest.approx(1200, abs=1)
        kinds = Counter(one.kind for one in recording.state_at(1200).objects)
    assert (kinds["Node"], kinds["Pod"]) == (3, 20)


def _digest(report: str) -> str:
    return next(line for line in report.splitlines() if "sha256:" in line)


def test_a_dump_is_shown_with_its_events_at_its_own_moment(tmp_path: Path) -> None:
    about = {"kind": "Pod", "namespace": "shop", "name": "web"}
    pod = make_pod("web", "shop").obj()
    pod.metadata.creation_timestamp = "2026-01-01T00:00:00Z"
    newer = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "newer", "namespace": "shop"},
        "eventTime": "2026-01-01T00:05:00.000000Z",
        "type": "Warning",
        "reason": "FailedScheduling",
        "note": "no room",
        "regarding": about,
    }
    older = {
        "metadata": {"name": "older", "namespace": "shop"},
        "lastTimestamp": "2026-01-01T00:04:00Z",
        "eventTime": None,
        "count": 3,
        "reason": "Pulled",
        "message": "image is there",
        "involvedObject": about,
    }
    objects = [json.loads(encode(pod)), newer]
    listed = {"apiVersion": "v1", "kind": "EventList", "items": [older]}
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "List", "items": objects}))
    (tmp_path / "events.json").write_text(json.dumps(listed))
    with served("-f", str(tmp_path)) as process:
        with urllib.request.urlopen(f"{address(process)}api/state") as answer:
            state = json.load(answer)
        assert ended(process) == (0, "")
    events = {row[0]: row[1:] for row in state["tables"]["events"]["rows"]}
    assert events == {
        "shop/newer": [
            *("2026-01-01T00:05:00.000000Z", "Warning", "FailedScheduling", "Pod shop/web"),
            *("no room", 1),
        ],
        "shop/older": [
            *("2026-01-01T00:04:00Z", "Normal", "Pulled", "Pod shop/web", "image is there", 3),
        ],
    }
    assert state["time"] == "2026-01-01T00:05:00Z"


def test_a_dump_that_says_when_it_was_taken_is_shown_at_that_moment(tmp_path: Path) -> None:
    said = {"kind": "List", "items": [], "bayplan": {"takenAt": "2026-02-03T04:05:06Z"}}
    said["items"] = [json.loads(encode(make_node("n1").obj()))]
    (tmp_path / "dump.json").write_text(json.dumps(said))
    with served("-f", str(tmp_path / "dump.json")) as process:
        with urllib.request.urlopen(f"{address(process)}api/state") as answer:
            assert json.load(answer)["time"] == "2026-02-03T04:05:06Z"
        assert ended(process) == (0, "")


def test_a_cluster_goes_on_without_a_recording_that_cannot_be_written(tmp_path: Path) -> None:
    file, most = tmp_path / "r.bpr", 200
    story = ("up", "-f", "examples/stories/3-from-zero.yaml")
    words = (*story, "--virtual", "--for", "2m", "--with", "scheduler")
    told = subprocess.run(
        [sys.executable, "-m", "bayplan", *words, "--record", str(file)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert "Traceback" not in told.stderr
    assert told.returncode == 0
    assert (
        f"--record {file}: File too large; recording stopped, the cluster keeps running"
        in _joined(told.stderr)
    )
    assert file.stat().st_size <= most


def _joined(text: str) -> str:
    return " ".join(text.split())
