"""How long a test waits for what others do, before it takes them for stuck.

Nothing is judged by how much of it is used: on a machine that is slow, or has more to do, all
takes longer and comes to the same.
"""

from __future__ import annotations

PATIENCE = 300.0
"""Seconds."""
