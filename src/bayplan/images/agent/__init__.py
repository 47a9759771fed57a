"""The image agent of a node: pulls its pods' images, collects garbage, cleans up after the gate."""
