"""The cluster under test: an embedded one of the test's own, or whatever KUBECONFIG_E2E names."""

from tests.client.conftest import access, client, namespace

__all__ = ["access", "client", "namespace"]
