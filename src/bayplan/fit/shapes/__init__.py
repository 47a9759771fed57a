"""Shapes: what scheduling looks at in a pod, compiled once, and how pods pick others."""
