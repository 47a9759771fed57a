"""PodTopologySpread: pods are spread over domains, as they must or should be."""
