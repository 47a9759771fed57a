"""One environment, installed as the Containerfile has it, for all tests of what is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.containerfile import build
from tests.packaging.empty_home import EmptyHome


@pytest.fixture(scope="package")
def image(tmp_path_factory: pytest.TempPathFactory) -> EmptyHome:
    """The folder after all steps of the first stage."""
    place = EmptyHome(tmp_path_factory.mktemp("image"))
    build(place)
    place.environment["PYTHONDONTWRITEBYTECODE"] = "1"  # as the last stage has it
    return place


@pytest.fixture(scope="package")
def programs(image: EmptyHome) -> Path:
    """The folder with the installed commands."""
    return image.folder / "opt/bayplan/bin"
