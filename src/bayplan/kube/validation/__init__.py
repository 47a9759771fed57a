"""Checks of single objects, run on everything that is loaded, so that garbage never "fits".

Types and ranges of integers are checked while decoding. Here it is what a type cannot say: that
quantities can be read, are not negative and fit 64 bits; that selectors compile; that names and
labels are what the API server accepts. A reader of a checked object can take all that for granted.

What the API server refuses but no decision could be misled by is let through.
"""

from bayplan.kube.validation.check import check, check_again, validate

__all__ = ["check", "check_again", "validate"]
