"""The kubelet's half of images: a pod's images on its node, for its runtime class."""
