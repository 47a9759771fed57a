"""Objects as they can be shown to others: without what decides nothing, and under other names.

    scrub(obj)                        # no annotation, secret's name or message that decides nothing
    Anonymiser(Pseudonyms(key))(obj)  # and no name, label or address that somebody has made up

Typed objects hold only the fields that Bayplan reads, so most of what could be told (environments,
arguments, commands, who manages which field) is gone already when an object is decoded.
"""

from bayplan.recordings.privacy.anonymise import TOO_TELLING, Anonymiser, release_of
from bayplan.recordings.privacy.pseudonyms import Pseudonyms
from bayplan.recordings.privacy.scrub import KEPT_ANNOTATIONS, scrub

__all__ = ["KEPT_ANNOTATIONS", "TOO_TELLING", "Anonymiser", "Pseudonyms", "release_of", "scrub"]
