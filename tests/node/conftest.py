"""The cluster under test: an embedded one of the test's own, or whatever KUBECONFIG_E2E names."""

from tests.scheduler.conftest import access, client, namespace, plain_client

__all__ = ["access", "client", "namespace", "plain_client"]
