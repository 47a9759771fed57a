"""Objects as YAML, for people: in the order they were built, with the comments they carry.

Holes that are still in them are written in Helm's words. Only `if`, `range`, `printf`, `quote`,
`toYaml` and `nindent` are used, so that whoever reads a template need not know more of Helm.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from bayplan.deploy.holes import (
    FIELD,
    NAMESPACE,
    SPREAD,
    VERSION,
    Each,
    File,
    Node,
    Remark,
    Text,
    Value,
    When,
)
from bayplan.deploy.values import Values, find

_PLAIN = re.compile(r"[A-Za-z/][\w./%-]*(?: [\w./%-]+)*")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
"""What JSON writes as it is and YAML takes for the end of a line, or for nothing."""
_WIDE = 96
_HELM = {NAMESPACE: ".Release.Namespace", VERSION: ".Chart.AppVersion"}


def write(objects: Iterable[Node]) -> str:
    """Documents, one after the other."""
    return "".join(line for one in objects for line in _document(one))


def _document(node: Node) -> Iterator[str]:
    if isinstance(node, When):
        yield f"{_if(node.path)}\n"
        yield from _document(node.node)
        yield "{{- end }}\n"
        return
    yield "---\n"
    yield from (f"{line}\n" for line in _lines(node, 0))


def _lines(node: Node, indent: int) -> Iterator[str]:
    if isinstance(node, dict):
        for key, one in node.items():
            yield from _entry(key, one, indent)
    elif isinstance(node, list):
        for one in node:
            yield from _item(one, indent)
    else:
        raise TypeError(f"cannot be written by itself: {node!r}")


def _entry(key: str, node: Node, indent: int) -> Iterator[str]:
    pad = " " * indent
    if isinstance(node, When):
        yield f"{pad}{_if(node.path)}"
        yield from _entry(key, node.node, indent)
        yield f"{pad}{{{{- end }}}}"
    elif key == SPREAD and isinstance(node, Value):
        yield f"{pad}{_yaml(node.path, indent)}"
    elif isinstance(node, File):
        yield f"{pad}{_key(key)}: |"
        yield f'{pad}  {{{{- .Files.Get "{node.name}" | nindent {indent + 2} }}}}'
    elif isinstance(node, Value) and isinstance(_usual(node.path), dict | list):
        yield f"{pad}{_key(key)}:"
        yield f"{pad}  {_yaml(node.path, indent + 2)}"
    elif isinstance(node, str) and _is_block(node):
        yield f"{pad}{_key(key)}: {'|' if node.endswith(chr(10)) else '|-'}"
        yield from (f"{pad}  {line}".rstrip() for line in node.removesuffix("\n").split("\n"))
    elif (flow := _flow(node)) is not None and len(pad) + len(key) + len(flow) < _WIDE:
        yield f"{pad}{_key(key)}: {flow}"
    elif isinstance(node, dict | list):
        yield f"{pad}{_key(key)}:"
        yield from _lines(node, indent + 2)
    else:
        yield f"{pad}{_key(key)}: {_scalar(node)}"


def _item(node: Node, indent: int) -> Iterator[str]:
    pad = " " * indent
    if isinstance(node, When):
        yield f"{pad}{_if(node.path)}"
        yield from _item(node.node, indent)
        yield f"{pad}{{{{- end }}}}"
    elif isinstance(node, Each):
        text = json.dumps(node.text.replace("{}", "%v"))
        yield f"{pad}{{{{- range {_word(node.path)} }}}}"
        yield f"{pad}- {{{{ printf {text} . | quote }}}}"
        yield f"{pad}{{{{- end }}}}"
    elif isinstance(node, Remark):
        yield f"{pad}# {node.text}"
        yield from _item(node.node, indent)
    elif isinstance(node, dict) and node:
        # The first line of what is inside takes the dash; templates' own lines do not.
        dash = "- "
        for line in _lines(node, indent + 2):
            begun = line.strip()
            takes = dash == "- " and not begun.startswith(("{{", "#"))
            yield f"{pad}{dash}{begun}" if takes else line
            dash = "  " if takes else dash
    else:
        yield f"{pad}- {_scalar(node)}"


def _flow(node: Node) -> str | None:
    """A list of plain words in one line, or what is empty; None for anything else."""
    if isinstance(node, dict | list) and not node:
        return "{}" if isinstance(node, dict) else "[]"
    if isinstance(node, list) and all(isinstance(one, str) and "{" not in one for one in node):
        return f"[{', '.join(_scalar(one) for one in node)}]"
    return None


def _is_block(text: str) -> bool:
    """Whether it has lines, and YAML gives them back as they are."""
    lines = text.removesuffix("\n").split("\n")
    plain = all(one.isprintable() and one == one.rstrip() for one in lines)
    return "\n" in text and plain and bool(lines[-1]) and not text[0].isspace()


def _key(key: str) -> str:
    return _scalar(key)


def _scalar(node: Node) -> str:
    match node:
        case bool() | int() | float():
            return json.dumps(node)
        case str():
            return _text(node)
        case Value(path):
            quoted = isinstance(_usual(path), str)
            return f"{{{{ {_word(path)}{' | quote' if quoted else ''} }}}}"
        case Text(text):
            said = json.dumps(FIELD.sub("%v", text))
            words = [_word(path) for path in FIELD.findall(text)]
            shown = f"printf {said} {' '.join(words)}" if words else said
            return f"{{{{ {shown} | quote }}}}"
        case None:
            return "null"
        case dict() | list() if not node:
            return "{}" if isinstance(node, dict) else "[]"
        case _:
            raise TypeError(f"cannot be written in a line: {node!r}")


def _text(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return _BREAKS.sub(_escaped, json.dumps(text, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _if(path: str) -> str:
    if path.startswith("!"):
        return f"{{{{- if not {_word(path[1:])} }}}}"
    return f"{{{{- if {_word(path)} }}}}"


def _yaml(path: str, indent: int) -> str:
    return f"{{{{- toYaml {_word(path)} | nindent {indent} }}}}"


def _word(path: str) -> str:
    """A field as templates name it, from inside a loop too."""
    return f"${_HELM[path]}" if path in _HELM else f"$.Values.{path}"


def _usual(path: str) -> object:
    return "" if path in _HELM else find(Values(), path)
