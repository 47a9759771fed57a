"""Who clients are: certificates and tokens, and the kubeconfig that carries them."""
