"""Validation of pods: spec, changes and status.

A rule returns the problems of a part of a pod, with the field path from `at` on. Parts have been
type checked and defaulted before.
"""
