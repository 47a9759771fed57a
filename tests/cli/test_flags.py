"""A flag is there since somebody can mean something by it, and not since a library makes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache

import pytest
from cyclopts import App
from cyclopts.argument import Argument

from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.providers.options import ProviderOptions
from bayplan.cli.main import COMMANDS, build_app, run

SAID_BOTH_WAYS = {one.name for kind in (AutoscalerOptions, ProviderOptions) for one in fields(kind)}
"""Flags of Cluster Autoscaler."""
REFUSED = (
    ["manifests", "--empty-set"],
    ["up", "-f", "cluster.yaml", "--no-virtual"],
    ["images", "list", "--no-quiet"],
)


@cache
def flags() -> dict[str, list[Argument]]:
    """The flags of every command."""
    app = build_app()
    return {
        name: list(one.assemble_argument_collection())
        for command in COMMANDS
        for name, one in called(command, app[command])
    }


def called(name: str, app: App) -> Iterator[tuple[str, App]]:
    """A command, or those that it has of its own."""
    inner = [one for one in app if not one.startswith("-")]
    yield from ((f"{name} {one}", app[one]) for one in inner) if inner else [(name, app)]


def test_no_flag_makes_a_list_empty_that_is_empty_anyway() -> None:
    offered = {
        name: [flag for one in found for flag in one.names] for name, found in flags().items()
    }
    assert len(offered) > 25
    assert not [one for found in offered.values() for one in found if one.startswith("--empty-")]


def test_what_is_off_cannot_be_switched_off() -> None:
    off = [one for found in flags().values() for one in found if one.field_info.default is False]
    senseless = [one.negatives for one in off if one.field_info.name not in SAID_BOTH_WAYS]
    assert [one for one in senseless if one] == []


def test_what_is_on_can_be_switched_off() -> None:
    taken = {name: [flag for one in found for flag in one.names] for name, found in flags().items()}
    assert "--no-fixes" in taken["explain"]
    assert "--no-crds" in taken["manifests"]
    assert "--no-leader-elect" in taken["scheduler"]


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_a_flag_that_is_not_offered_is_not_taken(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    assert f"Unknown option: {words[-1]}" in capsys.readouterr().err
