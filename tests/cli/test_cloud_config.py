"""What is wrong with the cloud's configuration is said at once, before anybody is elected."""

from __future__ import annotations

from pathlib import Path

import pytest

from bayplan.cli.main import run

NOBODY = "apiVersion: v1\nkind: Config\n"
WRONG = {
    "missing": (None, "No such file"),
    "no YAML": ("address: [", "config"),
    "unknown field": ("adress: 127.0.0.1:1\n", "adress"),
    "no CA": ("address: 127.0.0.1:1\ncacert: none.crt\n", "none.crt"),
    "empty CA": (
        "address: 127.0.0.1:1\ncacert: empty.crt\n",
        "cacert: the file has no certificate",
    ),
}


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What is said of a wrong autoscaler; there is no cluster that it could ask."""
    assert run(["autoscaler", "--kubeconfig", "/no/such/kubeconfig", "--listen", "", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("provider", ["externalgrpc", "simulated"])
@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_cloud_config_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], provider: str, text: str | None, said: str
) -> None:
    (tmp_path / "empty.crt").write_text("")
    file = tmp_path / "cloud-config"
    if text is not None:
        file.write_text(text)
    line = refused(capsys, "--cloud-provider", provider, "--cloud-config", str(file))
    assert line.startswith("error: ")
    assert said in line


@pytest.mark.parametrize("text", [None, "clusters: [", NOBODY])
def test_a_wrong_management_cluster_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None
) -> None:
    file = tmp_path / "management"
    if text is not None:
        file.write_text(text)
    line = refused(capsys, "--cloud-provider", "clusterapi", "--cloud-config", str(file))
    assert line.startswith("error: --cloud-config: ")


def test_a_wrong_file_of_groups_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--cloud-provider", "clusterapi", "--node-groups", str(tmp_path / "none.yaml"))
    assert "none.yaml: No such file" in refused(capsys, *words)
