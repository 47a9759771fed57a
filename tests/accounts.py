"""Clients that may do no more than a service account."""

from __future__ import annotations

from pathlib import Path

import yaml

TOKEN = "an-account-of-the-tests"


def write_token(folder: Path, account: str) -> Path:
    """A token file in which the account has the tests' token."""
    path = folder / "tokens.csv"
    path.write_text(f"{TOKEN},{account},1\n")
    return path


def restricted(kubeconfig: Path) -> Path:
    """The kubeconfig with the account's token in place of the administrator's."""
    said = yaml.safe_load(kubeconfig.read_text())
    said["users"][0]["user"] = {"token": TOKEN}
    path = kubeconfig.with_name("restricted")
    path.write_text(yaml.safe_dump(said))
    return path
