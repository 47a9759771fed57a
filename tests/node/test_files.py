"""Limits that people write: in a file of their own, and in a cluster file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bayplan.base.configfiles import ConfigFileError
from bayplan.cli.errors import BadInput
from bayplan.cli.options.attach_limits import LimitTerms
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.kube.attachtables import AttachLimitRow, read_custom_limits
from bayplan.node.decision import AttachLimitSettings
from bayplan.node.settings import SettingsFromFile


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("aws-ebs: {m5.large: -1}", "limits.yaml:1: aws-ebs.m5.large"),
        ("aws-ebs: {m5.large: many}", "limits.yaml:1: aws-ebs.m5.large"),
        ("aws-ebss: {}", "unknown field"),
        ("\ncsi: {'not a driver': {a: 1}}", "limits.yaml:2"),
        ("csi: {a.example.com: 4}", "limits.yaml:1: csi.a.example.com"),
        ("[", "limits.yaml"),
        ("azure-disk: {Standard_Z9: 1, standard_z9: 2}", "duplicate of Standard_Z9"),
        ("csi: {a.example.com: {'m*5': 1}}", "a * is allowed only at the end"),
    ],
)
def test_what_cannot_be_a_limit_is_told_with_its_place(
    text: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "limits.yaml"
    file.write_text(text)
    with pytest.raises(ConfigFileError) as caught:
        read_custom_limits(file)
    assert said in str(caught.value)
    with pytest.raises(BadInput, match="--limits-file"):
        LimitTerms(limits_file=file).settings("")


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nowhere"):
        LimitTerms(limits_file=tmp_path / "nowhere").settings("")


@pytest.mark.parametrize(
    "options", [LimitTerms(reserve_interfaces=0), LimitTerms(reserve_volumes=-1)]
)
def test_what_cannot_be_kept_back_is_bad_input(options: LimitTerms) -> None:
    with pytest.raises(BadInput, match="--reserve-"):
        options.settings("")


def test_the_gate_says_whether_anything_is_published() -> None:
    assert LimitTerms().settings("")() == AttachLimitSettings()
    assert not LimitTerms().settings("AttachVolumeLimit=false")().enabled
    with pytest.raises(BadInput, match="--feature-gates"):
        LimitTerms().settings("Attach=false")


def test_the_file_is_read_again_when_it_changes_and_kept_as_it_was_when_it_breaks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "limits.yaml"
    file.write_text("cinder: {'*': 7}")
    settings = SettingsFromFile(AttachLimitSettings(), file)
    seen = []
    for written in ("cinder: {'*': 8}", "cinder: {", None, "cinder: {a*: 90, ab*: 91, '*': 9}"):
        if written is None:
            file.unlink()
        else:
            other = tmp_path / "other"
            other.write_text(written)
            os.replace(other, file)  # noqa: PTH105 - as a ConfigMap's files are changed
        row = settings().options.own.row("cinder", "abc")
        assert settings() is settings()
        seen.append(row)
    assert seen == [
        AttachLimitRow("*", 8),
        AttachLimitRow("*", 8),
        AttachLimitRow("*", 8),
        AttachLimitRow("ab*", 91),
    ]
    assert caplog.text.count("custom limits not reloaded") == 2


def test_a_file_of_the_same_size_and_time_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "limits.yaml"
    file.write_text("cinder: {'*': 7}")
    os.utime(file, (0, 0))
    settings, before = SettingsFromFile(AttachLimitSettings(), file), file.stat()
    file.write_text("cinder: {'*': 8}")
    os.utime(file, (0, 0))
    while file.stat().st_ctime_ns == before.st_ctime_ns:
        os.utime(file, (0, 0))  # the clock of files ticks in milliseconds
    assert settings().options.own.row("cinder", "any") == AttachLimitRow("*", 8)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("attachLimits: {prefix: volumes}", "cluster:1: attachLimits.prefix"),
        ("attachLimits: {limits: {csi: {'no driver': {}}}}", "cluster:1: attachLimits.limits.csi"),
        (
            "instanceTypes: [{name: a}]\nnodeGroups: [{name: a, instanceType: a, cloud: other}]",
            "cluster:2: nodeGroups[0].cloud",
        ),
    ],
)
def test_a_cluster_file_that_makes_no_sense_is_told_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ConfigFileError) as caught:
        parse_cluster(text.encode(), "cluster", Path())
    assert said in str(caught.value)
