"""`bayplan simulate`: what-ifs in virtual time, compared over seeds, with a report."""

from bayplan.cli.simulate.command import simulate

__all__ = ["simulate"]
