"""The registry of clouds: every one can be opened, and is named where people look for it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from bayplan.autoscaler.providers import options
from bayplan.autoscaler.providers.registry import PROVIDERS

PAGE = Path(__file__).parents[3] / "docs" / "providers.md"


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_cloud_is_a_module_that_opens_it_and_checks_its_options(name: str) -> None:
    module = import_module(f"bayplan.autoscaler.providers.{name}")
    assert callable(module.open_provider)
    assert callable(module.check_options)


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_cloud_is_named_in_the_help_and_on_the_page(name: str) -> None:
    help_text = Path(options.__file__).read_text()
    assert name in help_text
    assert f"| `{name}` |" in PAGE.read_text()
