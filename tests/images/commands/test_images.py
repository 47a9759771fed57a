"""The image commands, as typed: against our own service and against containerd."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from bayplan.cli.images.output import human_size
from bayplan.cli.main import run
from tests.images.parts.registry import PASSWORD, USER, Registry
from tests.images.parts.service import CONFIG
from tests.images.peers.fixtures import Push, push_for_all
from tests.patience import PATIENCE

Bayplan = Callable[..., tuple[int, str, str]]


@pytest.fixture
def bayplan(capsys: pytest.CaptureFixture[str]) -> Bayplan:
    """Types a command; gives its exit code, its output and its errors on one line."""

    def type_command(*words: str) -> tuple[int, str, str]:
        code = run(list(words))
        captured = capsys.readouterr()
        return code, captured.out, " ".join(captured.err.split())

    return type_command


@pytest.fixture
def images(bayplan: Bayplan, bayplan_socket: str) -> Bayplan:
    """Types an image command for our own service."""

    def type_command(command: str, *words: str) -> tuple[int, str, str]:
        return bayplan("images", command, *words, "--socket", bayplan_socket, "--timeout", "30")

    return type_command


def test_pull_list_status_and_rm_by_runtime(images: Bayplan, registry: Registry) -> None:
    name = push_for_all(registry, "cli:1")
    for handler in ("wcow-2019", "wcow-2022"):
        code, out, _ = images("pull", "--runtime", handler, name)
        assert (code, out.startswith("Image is up to date for sha256:")) == (0, True)
    code, out, _ = images("list", name)
    assert code == 0
    header, *rows = out.splitlines()
    assert header.split() == ["IMAGE", "TAG", "IMAGE", "ID", "SIZE", "RUNTIME"]
    assert [row.split()[-1] for row in rows] == ["wcow-2019", "wcow-2022"]
    assert images("status", name, "--runtime", "wcow-2019")[0] == 0
    code, out, _ = images("rm", name, "--runtime", "wcow-2019")
    assert (code, "(wcow-2019)" in out) == (0, True)
    assert [row.split()[-1] for row in images("list", name)[1].splitlines()[1:]] == ["wcow-2022"]


def test_the_default_handler_is_listed_by_its_name(
    images: Bayplan, registry: Registry, push: Push
) -> None:
    image = push(registry, "cli:14")
    images("pull", image.name)
    assert images("list", image.name)[1].splitlines()[1].split()[-1] == "runc"
    assert "Runtime: runc" in images("status", image.name)[1].splitlines()


def test_an_absent_image_is_a_no_that_says_where_it_is(images: Bayplan, registry: Registry) -> None:
    name = push_for_all(registry, "cli:2")
    images("pull", "--runtime", "wcow-2022", name)
    code, _, errors = images("status", name)
    assert code == 1
    assert "image not found for the default runtime handler" in errors
    assert "it exists for 'wcow-2022', see --runtime" in errors
    assert images("rm", name)[0] == 1
    assert images("info", name, "--runtime", "wcow-2019")[0] == 1


def test_json_and_yaml_say_the_same(images: Bayplan, registry: Registry, push: Push) -> None:
    image = push(registry, "cli:3")
    images("pull", image.name)
    as_json = json.loads(images("list", image.name, "-o", "json")[1])
    assert yaml.safe_load(images("list", image.name, "-o", "yaml")[1]) == as_json
    (listed,) = as_json["images"]
    assert listed["id"] == image.id
    assert listed["spec"]["runtimeHandler"] == ""
    assert int(listed["size"]) > 0


def test_an_image_is_found_by_the_beginning_of_its_id(
    images: Bayplan, registry: Registry, push: Push
) -> None:
    image = push(registry, "cli:4")
    images("pull", image.name)
    for text in (image.id, image.id.removeprefix("sha256:")[:13]):
        code, out, _ = images("status", text)
        assert (code, f"ID: {image.id}" in out) == (0, True)
    code, out, _ = images("list", "--quiet", image.name)
    assert out.split() == [image.id]


def test_info_tells_all_of_an_image_and_of_the_runtime(
    images: Bayplan, registry: Registry, push: Push
) -> None:
    image = push(registry, "cli:5")
    images("pull", "--runtime", "kata", image.name)
    code, out, _ = images("info", image.name, "--runtime", "kata", "-o", "json")
    details = json.loads(out)
    assert code == 0
    assert details["status"]["spec"]["runtimeHandler"] == "kata"
    assert details["info"]["info"]["platform"]["os"] == "linux"
    code, out, _ = images("info")
    assert (code, out.startswith("Runtime: bayplan ")) == (0, True)
    assert "wcow-2019" in out
    assert "Images:" in out
    assert json.loads(images("info", "-o", "json")[1])["imageFilesystems"]


def test_platform_explains_an_index_without_pulling(images: Bayplan, registry: Registry) -> None:
    name = push_for_all(registry, "cli:6")
    code, out, _ = images("info", "--platform", name, "-o", "json")
    offers = {each["runtimeHandler"]: each for each in json.loads(out)["offers"]}
    assert code == 0
    assert offers["wcow-2019"]["platform"]["os.version"] == "10.0.17763.4851"
    assert offers["wcow-2022"]["platform"]["os.version"] == "10.0.20348.1970"
    assert offers["runc"]["default"]
    assert images("list", "--quiet", name)[1] == "", "nothing was pulled"
    images("pull", "--runtime", "wcow-2019", name)
    assert images("list", "--quiet", name)[1].strip() == offers["wcow-2019"]["imageId"]


def test_platform_says_what_is_on_offer_if_nothing_fits(
    images: Bayplan, bayplan: Bayplan, registry: Registry, push: Push, tmp_path: Path
) -> None:
    image = push(registry, "cli:7")
    code, out, errors = images("info", "--platform", image.name)
    assert code == 1
    assert "wcow-2019: no manifest matches under process isolation; available: linux/" in errors
    assert out.splitlines()[0].split() == ["RUNTIME", "WANTED", "GETS", "MANIFEST", "SIZE"]
    config = tmp_path / "config.toml"
    config.write_text(CONFIG)
    command = ("images", "info", "--platform", image.name, "--config", str(config))
    assert bayplan(*command, "--runtime", "kata")[0] == 0, "needs no runtime at all"
    assert bayplan(*command, "--runtime", "no-such")[0] == 2


def test_credentials_from_the_command_line_and_from_a_file(
    images: Bayplan, guarded_registry: Registry, push: Push, tmp_path: Path
) -> None:
    image = push(guarded_registry, "cli:8")
    code, _, errors = images("pull", image.name)
    assert code == 1
    assert "UNAUTHENTICATED" in errors
    assert images("pull", image.name, "--creds", f"{USER}:{PASSWORD}")[0] == 0
    auths = {guarded_registry.host: {"username": USER, "password": PASSWORD}}
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"auths": auths}))
    other = push(guarded_registry, "cli-other:8")
    assert images("pull", other.name, "--docker-config", str(file))[0] == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("pull", "Not A Name"), "not an image reference"),
        (("pull", "app", "--creds", "nopassword"), "USER:PASSWORD"),
        (("pull", "app", "--creds", "a:b", "--auth", "YTpi"), "only one of"),
        (("pull", "app", "--auth", "%"), "base64"),
        (("pull", "app", "--docker-config", "/no/such/file"), "No such file"),
        (("rm",), "give images"),
        (("rm", "app", "--prune"), "give images"),
        (("gc", "--high", "10", "--low", "20"), "above the high one"),
        (("list", "--feature-gates", "NoSuchGate=true"), "unknown feature gate"),
        (("info", "app", "--config", "x"), "--config: needs --platform"),
        (
            ("status", "app", "--runtime", "x", "--feature-gates", "RuntimeClassInImageCriApi=0"),
            "RuntimeClassInImageCriApi, which is off",
        ),
    ],
)
def test_a_wrong_question_is_answered_with_two(
    images: Bayplan, words: tuple[str, ...], why: str
) -> None:
    code, _, errors = images(*words)
    assert (code, why in errors) == (2, True), errors


def test_a_runtime_that_does_not_answer_is_a_no(bayplan: Bayplan, tmp_path: Path) -> None:
    code, _, errors = bayplan("images", "list", "--socket", str(tmp_path / "none.sock"))
    assert code == 1
    assert "ListImages: UNAVAILABLE" in errors


def test_an_unknown_handler_is_refused_by_the_runtime(images: Bayplan) -> None:
    code, _, errors = images("pull", "localhost:1/app", "--runtime", "no-such-handler")
    assert code == 1
    assert "unknown runtime handler 'no-such-handler'" in errors


def test_gc_shows_and_then_removes_what_nobody_uses(
    images: Bayplan, registry: Registry, push: Push
) -> None:
    image = push(registry, "cli:9")
    images("pull", "--runtime", "kata", image.name)
    code, out, _ = images("gc", "--unused", "--dry-run", "-o", "json")
    planned = json.loads(out)
    assert (code, planned["dryRun"]) == (0, True)
    assert {"id": image.id, "runtimeHandler": "kata"}.items() <= next(
        each for each in planned["removed"] if each["id"] == image.id
    ).items()
    assert images("status", image.name, "--runtime", "kata")[0] == 0
    code, out, _ = images("gc", "--unused")
    assert (code, "freed" in out) == (0, True)
    assert images("status", image.name, "--runtime", "kata")[0] == 1
    assert images("gc", "--high", "100", "--low", "100")[1].startswith("freed 0B")


def test_with_the_gate_off_there_is_no_runtime_column(
    images: Bayplan, registry: Registry, push: Push
) -> None:
    image = push(registry, "cli:10")
    off = ("--feature-gates", "RuntimeClassInImageCriApi=false")
    images("pull", image.name)
    images("pull", image.name, "--runtime", "kata")
    header, *rows = images("list", image.name, *off)[1].splitlines()
    assert "RUNTIME" not in header
    assert len(rows) == 1
    assert len(images("list", image.name)[1].splitlines()) == 3


def test_reset_removes_every_handlers_images(
    images: Bayplan, registry: Registry, push: Push, tmp_path: Path
) -> None:
    image = push(registry, "cli:11")
    for handler in ("", "kata"):
        images("pull", "--runtime", handler, image.name)
    state = ("--state-dir", str(tmp_path))
    code, out, errors = images("reset", "--dry-run", *state)
    assert (code, f"image {image.id},kata: would be removed" in out) == (0, True)
    assert "no pods were restarted" in errors
    assert len(images("list", "--quiet", image.name)[1].split()) == 2
    code, out, _ = images("reset", "-o", "json", *state)
    assert (code, json.loads(out)["complete"]) == (0, True)
    assert images("list", "--quiet")[1] == ""


def test_the_commands_speak_to_containerd_as_well(
    bayplan: Bayplan, containerd_socket: str, registry: Registry, push: Push
) -> None:
    image = push(registry, "cli:12")
    socket = ("--socket", f"unix://{containerd_socket}", "--timeout", "30")
    assert bayplan("images", "pull", image.name, *socket)[0] == 0
    code, out, _ = bayplan("images", "list", image.name, "--no-trunc", "--pinned", *socket)
    assert code == 0
    assert image.id in out
    assert out.splitlines()[1].split()[-2:] == ["runc", "false"], "containerd's own default"
    assert bayplan("images", "info", image.name, *socket)[0] == 0
    assert bayplan("images", "info", *socket)[1].startswith("Runtime: containerd ")
    assert bayplan("images", "info", "--platform", image.name, *socket)[0] == 0
    assert bayplan("images", "gc", "--dry-run", *socket)[0] in {0, 1}
    assert bayplan("images", "rm", image.name, *socket)[0] == 0
    assert bayplan("images", "status", image.name, *socket)[0] == 1


def test_the_endpoint_can_come_from_crictls_variable(bayplan_socket: str) -> None:
    environment = {**os.environ, "CONTAINER_RUNTIME_ENDPOINT": f"unix://{bayplan_socket}"}
    command = [sys.executable, "-c", "from bayplan.cli.main import main; main()"]
    subprocess.run(
        [*command, "images", "info", "--timeout", "30"],
        env=environment,
        check=True,
        capture_output=True,
        timeout=PATIENCE,
    )


def test_nothing_is_coloured_off_a_terminal(images: Bayplan, registry: Registry) -> None:
    name = push_for_all(registry, "cli:13")
    images("pull", name)
    assert "\x1b" not in images("list")[1]


@pytest.mark.parametrize(
    ("size", "shown"), [(0, "0B"), (999, "999B"), (1000, "1kB"), (4_261_550, "4.26MB")]
)
def test_sizes_are_written_as_crictl_writes_them(size: int, shown: str) -> None:
    assert human_size(size) == shown
