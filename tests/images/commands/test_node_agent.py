"""`bayplan node-agent --images` refuses what it cannot do, and names the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.cli.main import run

CONFIG = "--image-credential-provider-config"
PROGRAMS = "--image-credential-provider-bin-dir"
BAD = """\
apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- name: ecr
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  matchImages: []
  defaultCacheDuration: 12h
"""


def refused(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert run(["node-agent", "--images", *options]) == 2
    return " ".join(capsys.readouterr().err.split())


def test_a_bad_configuration_of_plugins_is_named_by_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(BAD)
    said = refused(capsys, CONFIG, str(config), PROGRAMS, str(tmp_path))
    assert "c.yaml:6: providers[0].matchImages: at least one pattern is needed" in said


def test_plugins_need_both_a_configuration_and_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "must be given together" in refused(capsys, PROGRAMS, str(tmp_path))
    config = tmp_path / "c.yaml"
    config.write_text(BAD)
    assert "must be given together" in refused(capsys, CONFIG, str(config))
    nowhere = refused(capsys, CONFIG, str(config), PROGRAMS, str(tmp_path / "none"))
    assert "is not a directory" in nowhere


def test_a_bound_of_less_than_all_images_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "must be -1 or more" in refused(capsys, "--node-status-max-images", "-2")
