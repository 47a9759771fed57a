"""Rules, and roles that are bound to somebody."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from tests.embedded.apiserver.http_client import Http

RBAC = "/apis/rbac.authorization.k8s.io/v1"
TOKENS = """
ann-token,ann,u1,"dev,ops"
sa-token,system:serviceaccount:default:robot,u2
"""


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[ApiServer]:
    """A server where RBAC decides."""
    path = tmp_path / "tokens.csv"
    path.write_text(TOKENS)
    async with ApiServer(ServerConfig(tokens=path, authorization="rbac")) as running:
        yield running


@pytest.fixture
async def admin(guarded: ApiServer) -> AsyncIterator[Http]:
    async with Http(guarded) as client:
        yield client


def rule(*verbs: str, resources: str = "pods", **more: Any) -> dict[str, Any]:
    return {"apiGroups": [""], "resources": resources.split(), "verbs": list(verbs), **more}


async def grant(
    admin: Http, subject: dict[str, str], *rules: dict[str, Any], name: str = "r"
) -> None:
    where = f"{RBAC}/namespaces/default"
    await admin.post(f"{where}/roles", {"metadata": {"name": name}, "rules": list(rules)})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    body = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    assert (await admin.post(f"{where}/rolebindings", body)).code == 201
