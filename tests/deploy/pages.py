"""The part of docs/deploy.md that is made from the source: what the parts are, and may do."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.deploy.components import COMPONENTS
from bayplan.deploy.roles import BY_COMPONENT, Rule
from tests.deploy.manifests import DEPLOY

PAGE = DEPLOY.parent / "docs" / "deploy.md"


def page() -> str:
    """The page with its tables renewed."""
    text = PAGE.read_text()
    for name, lines in (("parts", _parts()), ("roles", _roles())):
        begin, end = f"<!-- {name}: `make manifests` writes this -->\n", f"<!-- end of {name} -->"
        head, _, rest = text.partition(begin)
        text = f"{head}{begin}\n{''.join(lines)}\n{end}{rest.partition(end)[2]}"
    return text


def _parts() -> Iterator[str]:
    yield "| component | what it is | enabled by default, or by |\n|---|---|---|\n"
    for one in COMPONENTS:
        enabled = "yes" if one.is_default else f"`{one.switch}`"
        yield f"| `{one.name}` | {one.description} | {enabled} |\n"


def _roles() -> Iterator[str]:
    for part, roles in BY_COMPONENT.items():
        yield f"### {part}\n\n| verbs | resources | reason |\n|---|---|---|\n"
        yield from (_row(rule, "") for rule in roles.cluster)
        yield from (_row(rule, " in its own namespace") for rule in roles.own)
        yield "\n"


def _row(rule: Rule, where: str) -> str:
    group = f" (`{rule.group}`)" if rule.group else ""
    named = f" named {', '.join(f'`{one}`' for one in rule.names)}" if rule.names else ""
    what = ", ".join(f"`{one}`" for one in rule.resources)
    when = {"": ""}.get(rule.when, f"; with `{rule.when}`".replace("`!", "no `"))
    return f"| {', '.join(rule.verbs)} | {what}{group}{named}{where} | {rule.reason}{when} |\n"
