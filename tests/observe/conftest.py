"""The cluster under test is the same as the client's."""

from tests.client.conftest import access, client, namespace

__all__ = ["access", "client", "namespace"]
