"""Writes objects as readable YAML: keys in their own order, with comments.

References to values that are not rendered are written in Helm's template language. Only `if`,
`range`, `printf`, `quote`, `toYaml` and `nindent` are used, to keep the templates easy to read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from bayplan.deploy.templates import (
    FIELD,
    NAMESPACE,
    SPREAD,
    VERSION,
    ChartFile,
    Commented,
    Conditional,
    ForEach,
    TemplateNode,
    TextTemplate,
    ValueRef,
)
from bayplan.deploy.values import Values, find_value

_PLAIN = re.compile(r"[A-Za-z/][\w./%-]*(?: [\w./%-]+)*")
_RESERVED = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
"""Characters that JSON leaves as they are and YAML reads as a line break or drops."""
_WIDE = 96
_HELM = {NAMESPACE: ".Release.Namespace", VERSION: ".Chart.AppVersion"}


def write_yaml(objects: Iterable[TemplateNode]) -> str:
    """Return the objects as YAML documents."""
    return "".join(line for one in objects for line in _document(one))


def _document(node: TemplateNode) -> Iterator[str]:
    if isinstance(node, Conditional):
        yield f"{_if(node.path)}\n"
        yield from _document(node.node)
        yield "{{- end }}\n"
        return
    yield "---\n"
    yield from (f"{line}\n" for line in _lines(node, 0))


def _lines(node: TemplateNode, indent: int) -> Iterator[str]:
    if isinstance(node, dict):
        for key, one in node.items():
            yield from _entry(key, one, indent)
    elif isinstance(node, list):
        for one in node:
            yield from _item(one, indent)
    else:
        raise TypeError(f"neither a mapping nor a list: {node!r}")


def _entry(key: str, node: TemplateNode, indent: int) -> Iterator[str]:
    pad = " " * indent
    if isinstance(node, Conditional):
        yield f"{pad}{_if(node.path)}"
        yield from _entry(key, node.node, indent)
        yield f"{pad}{{{{- end }}}}"
    elif key == SPREAD and isinstance(node, ValueRef):
        yield f"{pad}{_yaml(node.path, indent)}"
    elif isinstance(node, ChartFile):
        yield f"{pad}{_key(key)}: |"
        yield f'{pad}  {{{{- .Files.Get "{node.name}" | nindent {indent + 2} }}}}'
    elif isinstance(node, ValueRef) and isinstance(_default(node.path), dict | list):
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


def _item(node: TemplateNode, indent: int) -> Iterator[str]:
    pad = " " * indent
    if isinstance(node, Conditional):
        yield f"{pad}{_if(node.path)}"
        yield from _item(node.node, indent)
        yield f"{pad}{{{{- end }}}}"
    elif isinstance(node, ForEach):
        text = json.dumps(node.text.replace("{}", "%v"))
        yield f"{pad}{{{{- range {_reference(node.path)} }}}}"
        yield f"{pad}- {{{{ printf {text} . | quote }}}}"
        yield f"{pad}{{{{- end }}}}"
    elif isinstance(node, Commented):
        yield f"{pad}# {node.text}"
        yield from _item(node.node, indent)
    elif isinstance(node, dict) and node:
        # The first line of the item gets the dash; lines of Helm's language and comments do not.
        dash = "- "
        for line in _lines(node, indent + 2):
            begun = line.strip()
            takes = dash == "- " and not begun.startswith(("{{", "#"))
            yield f"{pad}{dash}{begun}" if takes else line
            dash = "  " if takes else dash
    else:
        yield f"{pad}- {_scalar(node)}"


def _flow(node: TemplateNode) -> str | None:
    """Return a list of plain strings, or an empty node, in one line; None for other nodes."""
    if isinstance(node, dict | list) and not node:
        return "{}" if isinstance(node, dict) else "[]"
    if isinstance(node, list) and all(isinstance(one, str) and "{" not in one for one in node):
        return f"[{', '.join(_scalar(one) for one in node)}]"
    return None


def _is_block(text: str) -> bool:
    """Return whether the text has several lines that a YAML block scalar preserves."""
    lines = text.removesuffix("\n").split("\n")
    plain = all(one.isprintable() and one == one.rstrip() for one in lines)
    return "\n" in text and plain and bool(lines[-1]) and not text[0].isspace()


def _key(key: str) -> str:
    return _scalar(key)


def _scalar(node: TemplateNode) -> str:
    match node:
        case bool() | int() | float():
            return json.dumps(node)
        case str():
            return _text(node)
        case ValueRef(path):
            quoted = isinstance(_default(path), str)
            return f"{{{{ {_reference(path)}{' | quote' if quoted else ''} }}}}"
        case TextTemplate(text):
            pattern = json.dumps(FIELD.sub("%v", text))
            fields = [_reference(path) for path in FIELD.findall(text)]
            shown = f"printf {pattern} {' '.join(fields)}" if fields else pattern
            return f"{{{{ {shown} | quote }}}}"
        case None:
            return "null"
        case dict() | list() if not node:
            return "{}" if isinstance(node, dict) else "[]"
        case _:
            raise TypeError(f"not a scalar: {node!r}")


def _text(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    return _BREAKS.sub(_escaped, json.dumps(text, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _if(path: str) -> str:
    if path.startswith("!"):
        return f"{{{{- if not {_reference(path[1:])} }}}}"
    return f"{{{{- if {_reference(path)} }}}}"


def _yaml(path: str, indent: int) -> str:
    return f"{{{{- toYaml {_reference(path)} | nindent {indent} }}}}"


def _reference(path: str) -> str:
    """Return a field as Helm templates name it, also inside a loop."""
    return f"${_HELM[path]}" if path in _HELM else f"$.Values.{path}"


def _default(path: str) -> object:
    return "" if path in _HELM else find_value(Values(), path)
