"""Every group has its OpenAPI document."""

from __future__ import annotations

from typing import Any

from tests.embedded.apiserver.http_client import Http


async def test_every_group_has_an_openapi_document(http: Http) -> None:
    index = (await http.get("/openapi/v3")).body["paths"]
    for path, entry in index.items():
        document = (await http.get(entry["serverRelativeURL"])).body
        assert document["openapi"] == "3.0.0", path
        schemas = document["components"]["schemas"]
        assert not _dangling(document, schemas), path
    everything = (await http.get("/openapi/v2")).body
    assert "io.k8s.api.core.v1.PodSpec" in everything["definitions"]
    assert (await http.get("/openapi/v3/apis/nope/v1")).code == 404


def _dangling(value: Any, schemas: dict[str, Any]) -> list[str]:
    """References that lead nowhere."""
    if isinstance(value, list):
        return [found for one in value for found in _dangling(one, schemas)]
    if not isinstance(value, dict):
        return []
    reference = value.get("$ref")
    found = []
    if isinstance(reference, str) and reference.rpartition("/")[2] not in schemas:
        found.append(reference)
    return found + [inner for one in value.values() for inner in _dangling(one, schemas)]
