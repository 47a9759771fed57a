"""Health, version and metrics."""

from __future__ import annotations

from tests.embedded.apiserver.configmaps import CMS, config_map
from tests.embedded.apiserver.http_client import Http


async def test_health_version_and_metrics(http: Http) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        assert (await http.get(path)).body == b"ok"
    assert (await http.get("/version")).body["major"] == "1"
    await http.post(CMS, config_map("a"))
    metrics = (await http.get("/metrics")).body.decode()
    assert 'apiserver_storage_objects{resource="configmaps"} 1.0' in metrics
    assert 'resource="configmaps"' in metrics
