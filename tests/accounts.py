"""Clients that may do no more than a service account."""

from __future__ import annotations

from collections.abc import Iterable
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


def token_of(account: str) -> str:
    """A token of its own for a service account."""
    return f"{TOKEN}-{account}"


def write_tokens(folder: Path, accounts: Iterable[str], namespace: str = "kube-system") -> Path:
    """A token file in which each of these service accounts has its token, and its groups."""
    path = folder / "tokens.csv"
    groups = f"system:serviceaccounts,system:serviceaccounts:{namespace}"
    path.write_text(
        "".join(
            f'{token_of(one)},system:serviceaccount:{namespace}:{one},{number},"{groups}"\n'
            for number, one in enumerate(accounts)
        )
    )
    return path
