"""The snapshot's columns and indexes: what is where, and who counts whom.

Each module keeps one part and knows nothing of predicates. Every change costs what it touches.
"""
