"""The documentation, kept true: help that is executed into it, and examples that are run."""
