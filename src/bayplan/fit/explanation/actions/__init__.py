"""Steps as actions: which object is changed, the patch, the command that makes it, and its risks.

What a step changes is known from the objects before and after it, so the patch is their difference
and no proposal has to write one.
"""

from bayplan.fit.explanation.actions.action import acted

__all__ = ["acted"]
