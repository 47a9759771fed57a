"""`bayplan simulate`: clusters in virtual time, variants compared over seeds, and a report."""

from bayplan.cli.simulate.command import simulate

__all__ = ["simulate"]
