"""`cheapest-mix`: the cheapest combination of groups for all waiting pods together.

With HiGHS (the extra `optimal`) it is looked for longer, and the bound is closer; without, a good
answer is found all the same, and the bound is as true.
"""

from bayplan.autoscaler.expanders.mix.expander import cheapest_mix

__all__ = ["cheapest_mix"]
