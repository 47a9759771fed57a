"""The image manager: pulls a pod's images for its runtime class, as the kubelet does."""
