"""InterPodAffinity: pods that must, or would rather, be near others or away from them."""
