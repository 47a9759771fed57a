"""The `bayplan` command: a list of commands, each imported only when it is called.

Exit codes are the same everywhere: 0 is "yes" (it fits, it worked), 1 is "no" (it does not fit, it
failed), 2 is "the question was wrong" (bad arguments or bad input), 5 is "cannot be judged", 74 is
a full disk, 130 is Ctrl-C, 141 is a pipe whose reader has gone.
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
    "volumes": "bayplan.cli.volumes:volumes",
    "webhook": "bayplan.cli.webhook:webhook",
}
"""Command name → where its function (or its sub-App) lives."""
_MISSING = re.compile(r'^(?:Command ".*?" p|P)arameter (\S+) requires an argument\.')
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
INTERNAL = {"simulate-worker": "bayplan.cli.simulate.worker:simulate_worker"}
"""Commands that others of ours call, and no people."""
SUMMARIES: dict[str, str] = {
    "apiserver": "Serve the Kubernetes API from one process.",
    "autoscaler": "Buy nodes for pods that wait, and give back those that nobody needs.",
    "check": "Say what is wrong with a cluster, why it matters, and what to do next.",
    "cloud": "List, resize and disturb the simulated cloud of `bayplan up`.",
    "completion": "Print a script that lets a shell complete our command lines.",
    "cri": "Serve images per runtime handler on a CRI socket.",
    "demo": "Tell what Bayplan is for: eight stories, each with its feature gate on and off.",
    "dump": "Save what the other commands read of a cluster, without secrets.",
    "explain": "Say where a pod would go and why, or why nowhere and what would help.",
    "images": "Pull, list, inspect, remove and collect images by runtime handler.",
    "manifests": "Print the objects that run Bayplan in a cluster.",
    "node-agent": "Serve a node: its images by runtime class, its attach limits by instance type.",
    "plan": "Show what the autoscaler would buy and give back, and why.",
    "queues": "Show the tree of queues, what each has, and who waits for what.",
    "record": "Keep a cluster's changes in a file, to be played on the page of `bayplan ui`.",
    "scheduler": "Place pods, on any API server.",
    "simulate": "Run clusters in virtual time, compare variants over seeds, and report.",
    "ui": "Serve a page of the cluster: bays, volumes, queues, who waits and why, what is next.",
    "up": "Run a simulated cluster: nodes, CSI drivers, workloads and a cloud.",
    "volumes": "Show how many volumes each node has attached, how many it can, and who says so.",
    "webhook": "Gate pods that wait for their queue, and refuse queues that make no sense.",
}
"""What `bayplan --help` says of a command, since it does not import it."""


def build_app(called: str = "", program: str = "bayplan") -> App:
    """The command line, with every command registered but none imported; the one that is called
    speaks for itself.
    """
    app = App(
        name=program,
        help="Decide what fits in a Kubernetes cluster, and say why.",
        version=bayplan.__version__,
        result_action="return_value",
        default_parameter=FLAGS,
    )
    for name, target in COMMANDS.items():
        summary = None if name == called else SUMMARIES.get(name)
        if target.endswith(":app"):  # it tells each of its own commands what flags mean
            app.command(target, name=name, help=summary)
        else:
            app.command(target, name=name, help=summary, default_parameter=FLAGS)
    for name, target in INTERNAL.items():
        app.command(target, name=name, show=False)
    return app


def run(arguments: list[str] | None = None) -> int:
    """Run one command line; returns its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    program = _program()
    try:
        app = build_app(words[0] if words else "", program)
        result = app(words, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except CycloptsError as problem:
        help_page = " ".join((program, *(problem.command_chain or ()), "--help"))
        return _refused(f"{_said(problem)} `{help_page}` tells more.", EXIT_BAD_INPUT)
    except (BadInput, InputError) as problem:
        # What reports say may quote anything; what commands say has its line breaks on purpose.
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
    """Say that the output has no place any more, unless who read it has just seen enough."""
    has_gone = isinstance(problem, BrokenPipeError) or _is_of_closed_terminal(problem)
    if not has_gone and problem.errno not in _FULL:
        raise problem
    # What is left of it must not fail at exit again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if has_gone:
        return EXIT_PIPE_CLOSED
    return _refused(f"the output cannot be written: {problem.strerror}", EXIT_UNWRITABLE)


def _is_of_closed_terminal(problem: OSError) -> bool:
    """Whether it was written to a terminal that is gone, which is no fault of a disk."""
    return problem.errno == errno.EIO and stat.S_ISCHR(os.fstat(sys.stdout.fileno()).st_mode)


def _said(problem: CycloptsError) -> str:
    """What is wrong with the command line; what was not given at all does not lack its value."""
    given = isinstance(problem, MissingArgumentError) and (problem.keyword or problem.tokens_so_far)
    return str(problem) if given else _MISSING.sub(r"\1 is missing.", str(problem))


def _refused(why: str, code: int) -> int:
    """Say on standard error what is wrong."""
    errors = Console(stderr=True)
    errors.print(f"error: {why}", style="red", highlight=False, markup=False, soft_wrap=True)
    return code


def _program() -> str:
    """What the user has typed to call us: kubectl runs `kubectl-bayplan` for `kubectl bayplan`."""
    called = Path(sys.argv[0]).name.partition(".")[0]
    return "kubectl bayplan" if called.startswith("kubectl-") else "bayplan"


def main() -> None:
    """Entry point of the installed command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever the terminal cannot show
    # gRPC's core would write lines of its own between ours; what matters comes back as an error.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    sys.exit(run())
