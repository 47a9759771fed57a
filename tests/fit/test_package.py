"""What importing the package costs and offers."""

from __future__ import annotations

import subprocess
import sys

import pytest

import bayplan


def test_the_snapshot_is_the_packages_own() -> None:
    from bayplan.fit import Snapshot  # noqa: PLC0415

    assert bayplan.Snapshot is Snapshot


def test_importing_the_package_alone_loads_no_arrays() -> None:
    code = "import bayplan, sys; sys.exit('numpy' in sys.modules or 'msgspec' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_the_package_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'nothing'"):
        bayplan.nothing  # noqa: B018
