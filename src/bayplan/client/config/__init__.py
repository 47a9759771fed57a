"""Access to an API server: kubeconfig, exec plugins, the pod's service account."""

from bayplan.client.config.access import Access
from bayplan.client.config.loader import from_kubeconfig, from_service_account, load_access

__all__ = ["Access", "from_kubeconfig", "from_service_account", "load_access"]
