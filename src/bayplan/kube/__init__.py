"""Kubernetes' types and arithmetic: objects, quantities, selectors, tolerations, names and gates.

Objects hold the fields that the packages above read and drop the rest. A field that Kubernetes
defaults has the same default here, so that no reader has to handle its absence.
"""
