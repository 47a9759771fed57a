"""The served kinds: a table of built-in ones, and those of CRDs."""
