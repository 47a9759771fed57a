"""Shells complete our command lines, and kubectl those of its plugin."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bayplan.cli.completion import candidates
from bayplan.cli.main import COMMANDS
from tests.kubectl import needs_kubectl

pytestmark = pytest.mark.whole


BASH = shutil.which("bash")
ASK = """
source /dev/stdin
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
_bayplan bayplan "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def stdout_of(*command: str, path: str = "") -> str:
    """What a command writes to its standard output."""
    environment = os.environ | ({"PATH": path} if path else {})
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def bayplan(*words: str) -> str:
    return stdout_of(sys.executable, "-m", "bayplan", *words)


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        (["expl"], "explain"),
        (["images", "pu"], "pull"),
        (["plan", "--max-n"], "--max-nodes-total"),
        (["help", "pla"], "plan"),
        (["version", "--out"], "--output"),
    ],
)
def test_bash_completes_commands_and_options(typed: list[str], completed: str) -> None:
    assert BASH is not None
    words = [BASH, "--norc", "-c", ASK, "bash", "bayplan", *typed]
    script = bayplan("completion", "bash")
    done = subprocess.run(words, input=script, capture_output=True, text=True, check=True)
    assert completed in done.stdout.split()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script_that_names_every_command(shell: str) -> None:
    script = bayplan("completion", shell)
    assert all(command in script for command in COMMANDS)


def test_kubectl_is_told_commands_then_options() -> None:
    assert list(candidates(["pl"])) == ["plan", ":0"]
    assert list(candidates(["images", "r"])) == ["reset", "rm", ":0"]
    assert "--filename" in list(candidates(["explain", "shop/ledger-1", "--f"]))
    assert list(candidates(["explain", "--no-such"])) == [":4"]
    assert set(COMMANDS) <= set(candidates([]))


@needs_kubectl
def test_kubectl_finds_its_plugin_and_completes_it(tmp_path: Path) -> None:
    for name, module, function in (
        ("kubectl-bayplan", "main", "main"),
        ("kubectl_complete-bayplan", "completion", "kubectl_complete"),
    ):
        program = tmp_path / name
        code = f"from bayplan.cli.{module} import {function}\n{function}()\n"
        program.write_text(f"#!{sys.executable}\n{code}")
        program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert stdout_of("kubectl", "bayplan", "plan", "--help", path=path).startswith(
        "Usage: kubectl bayplan plan"
    )
    assert stdout_of("kubectl", "__complete", "bayplan", "vol", path=path).split() == [
        "volumes",
        ":0",
    ]
