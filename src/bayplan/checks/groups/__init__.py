"""Check groups, one file each: the kinds of finding (`KINDS`), and the check itself (`find`)."""
