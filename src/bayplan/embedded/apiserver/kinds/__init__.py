"""What kinds of objects there are: one table for the built-in ones, and those that CRDs add."""
