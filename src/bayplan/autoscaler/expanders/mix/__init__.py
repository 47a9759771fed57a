"""`cheapest-mix`: the cheapest combination of groups for all unschedulable pods together.

With HiGHS (the extra `optimal`) the search is longer and the lower bound closer; without it the
bound still holds.
"""

from bayplan.autoscaler.expanders.mix.expander import cheapest_mix

__all__ = ["cheapest_mix"]
