"""Check groups, one file each: what it may find (`KINDS`), and looking for it (`find`)."""
