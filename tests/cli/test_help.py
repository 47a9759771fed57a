"""`bayplan help` prints what `--help` does."""

from __future__ import annotations

from typing import get_args

import pytest

from bayplan.cli.completion import candidates
from bayplan.cli.help import CommandName
from bayplan.cli.main import COMMANDS, run

Captured = pytest.CaptureFixture[str]


def printed(capsys: Captured, *words: str) -> tuple[int, str]:
    code = run(list(words))
    return code, capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [[], ["check"], ["help"], ["images"], ["images", "pull"], ["cloud", "fail"]], ids=str
)
def test_it_prints_what_the_flag_prints(capsys: Captured, words: list[str]) -> None:
    asked = printed(capsys, "help", *words)
    assert asked[0] == 0
    assert asked == printed(capsys, *words, "--help")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pla"], 'Did you mean "plan"?'),
        (["images", "pul"], "did you mean 'pull'?"),
        (["plan", "x"], "plan has no subcommands: x"),
    ],
)
def test_a_command_that_does_not_exist_is_bad_input(
    capsys: Captured, words: list[str], message: str
) -> None:
    assert run(["help", *words]) == 2
    assert message in capsys.readouterr().err


def test_it_knows_every_command() -> None:
    assert get_args(CommandName) == tuple(sorted(COMMANDS))


def test_kubectl_completes_the_commands_after_it() -> None:
    assert list(candidates(["help", "pl"])) == ["plan", ":0"]
    assert list(candidates(["help", "images", "r"])) == ["reset", "rm", ":0"]
