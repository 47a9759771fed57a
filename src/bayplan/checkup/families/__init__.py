"""Families of findings, one file each: what it may find (`KINDS`), and looking for it (`find`)."""
