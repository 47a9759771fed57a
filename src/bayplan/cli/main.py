"""The `bayplan` program: a list of commands, each imported only when it is called.

Exit codes are the same for all commands: 0 success (it fits), 1 failure (it does not fit), 2 bad
arguments or input, 5 unknown, 74 full disk, 130 Ctrl-C, 141 the reader of a pipe has closed it.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import sys
from pathlib import Path

from cyclopts import App, CycloptsError, MissingArgumentError
from rich.console import Console

import bayplan
from bayplan.base.errors import InputError
from bayplan.cli.errors import (
    EXIT_BAD_INPUT,
    EXIT_INTERRUPTED,
    EXIT_PIPE_CLOSED,
    EXIT_UNWRITABLE,
    BadInput,
    Unwritable,
)
from bayplan.cli.options.flags import FLAGS
from bayplan.cli.text.output import printable

COMMANDS: dict[str, str] = {
    "apiserver": "bayplan.cli.apiserver:apiserver",
    "autoscaler": "bayplan.cli.autoscaler:autoscaler",
    "check": "bayplan.cli.check:check",
    "cloud": "bayplan.cli.cloud:app",
    "completion": "bayplan.cli.completion:completion",
    "cri": "bayplan.cli.cri:cri",
    "demo": "bayplan.cli.demo:demo",
    "dump": "bayplan.cli.dump:dump",
    "explain": "bayplan.cli.explain:explain",
    "help": "bayplan.cli.help:show_help",
    "images": "bayplan.cli.images:app",
    "manifests": "bayplan.cli.manifests:manifests",
    "node-agent": "bayplan.cli.node_agent:node_agent",
    "plan": "bayplan.cli.plan:plan",
    "queues": "bayplan.cli.queues:queues",
    "record": "bayplan.cli.record:record",
    "scheduler": "bayplan.cli.scheduler:scheduler",
    "simulate": "bayplan.cli.simulate:simulate",
    "ui": "bayplan.cli.ui:ui",
    "up": "bayplan.cli.up:up",
    "version": "bayplan.cli.version:version",
    "volumes": "bayplan.cli.volumes:volumes",
    "webhook": "bayplan.cli.webhook:webhook",
}
"""Command name → its function, or its App of subcommands."""
_MISSING = re.compile(r'^(?:Command ".*?" p|P)arameter (\S+) requires an argument\.')
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
INTERNAL = {"simulate-worker": "bayplan.cli.simulate.worker:simulate_worker"}
"""Commands that only other commands call."""
SUMMARIES: dict[str, str] = {
    "apiserver": "Serve the Kubernetes API from one process.",
    "autoscaler": "Scale node groups up for pending pods, and down when nodes are unneeded.",
    "check": "Report what is wrong with a cluster, why it matters, and what to do next.",
    "cloud": "List and resize groups of a simulated cloud, and inject faults.",
    "completion": "Print a completion script for a shell.",
    "cri": "Serve images per runtime handler on a CRI socket.",
    "demo": "Show what Bayplan does in eight stories, with feature gates on and off.",
    "dump": "Save the objects that the other commands read, without secrets.",
    "explain": "Explain to which node a pod would be scheduled, or why none fits.",
    "help": "Print the help of a command.",
    "images": "Pull, list, inspect, remove and collect images by runtime handler.",
    "manifests": "Print the objects that run Bayplan in a cluster.",
    "node-agent": "Manage a node's images by runtime class, and publish its attach limits.",
    "plan": "Show what the autoscaler would scale up and down, and why.",
    "queues": "Show the queues: quota, usage, and what groups wait for.",
    "record": "Record a cluster's changes to a file, for replay with `bayplan ui`.",
    "scheduler": "Schedule pods, on any API server.",
    "simulate": "Simulate clusters in virtual time, and compare variants over seeds.",
    "ui": "Serve a web page of the cluster: nodes, volumes, queues, pending pods, plans.",
    "up": "Run a simulated cluster: nodes, CSI drivers, workloads and a cloud.",
    "version": "Print the version, and the Python, platform and commit behind it.",
    "volumes": "Show attached volumes and attach limits by node and driver.",
    "webhook": "Gate pods of queues, and refuse invalid queues.",
}
"""The summaries in `bayplan --help`, which does not import the commands."""


def build_app(called: str = "", program: str = "bayplan") -> App:
    """Return the app with all commands registered; only the called one has its own help."""
    app = App(
        name=program,
        help="Schedule pods, scale node groups and admit workloads in Kubernetes, and explain why.",
        version=bayplan.__version__,
        result_action="return_value",
        default_parameter=FLAGS,
    )
    for name, target in COMMANDS.items():
        summary = None if name == called else SUMMARIES.get(name)
        if target.endswith(":app"):  # it sets the parameters of its own commands
            app.command(target, name=name, help=summary)
        else:
            app.command(target, name=name, help=summary, default_parameter=FLAGS)
    for name, target in INTERNAL.items():
        app.command(target, name=name, show=False)
    return app


def run(arguments: list[str] | None = None) -> int:
    """Run one command line; returns its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    program = program_name()
    try:
        app = build_app(words[0] if words else "", program)
        result = app(words, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except CycloptsError as problem:
        help_page = " ".join((program, *(problem.command_chain or ()), "--help"))
        return _refused(f"{_message(problem)} See `{help_page}`.", EXIT_BAD_INPUT)
    except (BadInput, InputError) as problem:
        # Messages of reports may quote input; those of commands have intended line breaks.
        why = str(problem) if isinstance(problem, BadInput) else printable(str(problem))
        return _refused(why, EXIT_BAD_INPUT)
    except Unwritable as problem:
        return _refused(str(problem), EXIT_UNWRITABLE)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except OSError as problem:
        return _unwritten(problem)
    return result if isinstance(result, int) else 0


def _unwritten(problem: OSError) -> int:
    """Report that the output cannot be written, unless its reader has closed it."""
    has_gone = isinstance(problem, BrokenPipeError) or _is_of_closed_terminal(problem)
    if not has_gone and problem.errno not in _FULL:
        raise problem
    # Buffered output must not fail again at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if has_gone:
        return EXIT_PIPE_CLOSED
    return _refused(f"the output cannot be written: {problem.strerror}", EXIT_UNWRITABLE)


def _is_of_closed_terminal(problem: OSError) -> bool:
    """Return whether the output was a terminal that is closed."""
    return problem.errno == errno.EIO and stat.S_ISCHR(os.fstat(sys.stdout.fileno()).st_mode)


def _message(problem: CycloptsError) -> str:
    """Return what is wrong with the command line; a parameter that is not given is missing."""
    given = isinstance(problem, MissingArgumentError) and (problem.keyword or problem.tokens_so_far)
    return str(problem) if given else _MISSING.sub(r"\1 is missing.", str(problem))


def _refused(why: str, code: int) -> int:
    """Print an error, and return the exit code."""
    errors = Console(stderr=True)
    errors.print(f"error: {why}", style="red", highlight=False, markup=False, soft_wrap=True)
    return code


def program_name() -> str:
    """Return how the user called us: kubectl runs `kubectl-bayplan` for `kubectl bayplan`."""
    called = Path(sys.argv[0]).name.partition(".")[0]
    return "kubectl bayplan" if called.startswith("kubectl-") else "bayplan"


def main() -> None:
    """Entry point of the installed command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for terminals that are not UTF-8
    # gRPC's core would log to standard error; its errors are reported as exceptions anyway.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    sys.exit(run())
