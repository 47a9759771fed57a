"""Pods: what one may say of itself, how it may change, and what its status may become.

A rule says what is wrong with a part of a pod, as causes that name the field from `at` on. Parts
have been checked for their shape before, and filled with defaults.
"""
