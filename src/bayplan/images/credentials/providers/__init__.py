"""Credential-provider plugins: programs that give credentials for images, as the kubelet runs them.

`config` reads what an operator says of them, `plugin` speaks with one, `provider` decides when to
ask it and for how long its answer is good, `keyring` puts all of them together for a pod.
"""
