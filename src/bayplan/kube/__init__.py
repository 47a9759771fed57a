"""Kubernetes' vocabulary: typed objects, quantities, selectors, tolerations, names and gates.

Nothing here knows Bayplan. Objects hold what the rooms above read and drop the rest; a field that
Kubernetes defaults has that default here, so that a reader never asks "and if it is absent?".
"""
