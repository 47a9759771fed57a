"""The webhook's manifest grants all that the webhook does, and no more than it needs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bayplan.admission.certificates import SECRETS
from bayplan.admission.configurations import MUTATING
from bayplan.client import connect, merge
from bayplan.client.errors import ForbiddenError
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.kube.pods import Pod
from tests.accounts import restricted, write_token
from tests.admission.manifests import install_kinds
from tests.admission.test_registration import OURS, daemon
from tests.deploy.manifests import made
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


ACCOUNT = "system:serviceaccount:kube-system:bayplan-webhook"


async def test_what_the_manifest_grants_is_enough_and_not_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokens, path = write_token(tmp_path, ACCOUNT), tmp_path / "kubeconfig"
    config = ServerConfig(kubeconfig=path, tokens=tokens, authorization="rbac")
    async with ApiServer(config), connect(path) as admin:
        await install_kinds(admin)
        for one in made("webhook"):
            await admin.create(one)
        async with connect(restricted(path)) as client:
            for _ in range(2):  # the second time all is there, and has to be put right
                hook = daemon()
                leading = asyncio.ensure_future(hook.lead(client))
                await asyncio.wait_for(hook.ready.wait(), PATIENCE)
                await asyncio.wait_for(hook.app.knows_queues.wait(), PATIENCE)
                leading.cancel()
                await asyncio.gather(leading, return_exceptions=True)
                empty = merge({"data": {"tls.crt": "", "tls.key": ""}})
                await admin.patch(SECRETS, OURS.namespace, OURS.name, change=empty)
            with pytest.raises(ForbiddenError):
                await client.list(Pod, "default")
            with pytest.raises(ForbiddenError):
                await client.list(SECRETS, OURS.namespace)
            with pytest.raises(ForbiddenError):
                await client.delete(MUTATING, OURS.name)
    assert "forbidden" not in caplog.text
