"""The real kubectl. `make test` installs it where it may; in CI whoever lacks it fails."""

from __future__ import annotations

import shutil

import pytest

KUBECTL = shutil.which("kubectl") or ""
needs_kubectl = pytest.mark.skipif(not KUBECTL, reason="kubectl is not installed")
