"""The part of Go's templates that Kubernetes' benchmark uses."""

from __future__ import annotations

import pytest

from bench.scheduler_perf.gotemplate import Template, TemplateError


@pytest.mark.parametrize(
    ("text", "values", "shown"),
    [
        ("name: pod-{{.Index}}", {"Index": 3}, "name: pod-3"),
        ("{{ .Index }}/{{ .Count }}", {"Index": 3, "Count": 5}, "3/5"),
        ("{{ Mod .Index 12 }}", {"Index": 27}, "3"),
        ("{{DivideInt .Index 5}}", {"Index": 27}, "5"),
        ("{{ DivideInt 30000 .Count }}m", {"Count": 7}, "4285m"),
        ("{{AddInt 8000 (Mod .Index (DivideInt .pods .nodes))}}",
         {"Index": 25, "pods": 100, "nodes": 10}, "8005"),
        ("{{if .priority}}priority: {{AddInt 0 .priority}}{{end}}", {"priority": 7}, "priority: 7"),
        ("{{if .priority}}priority: {{.priority}}{{end}}", {}, ""),
        ('{{if eq .mode "single"}}a{{else}}b{{end}}', {"mode": "single"}, "a"),
        ('{{if eq .mode "single"}}a{{else}}b{{end}}', {"mode": "all"}, "b"),
        ('{{if eq .n 1}}a{{else if eq .n 2}}b{{else}}c{{end}}', {"n": 2}, "b"),
        ('{{if eq .n 1}}a{{else if eq .n 2}}b{{else}}c{{end}}', {"n": 3}, "c"),
        ("{{$n := .Count}}{{range $i := ($n | Int)}}{{$i}},{{end}}", {"Count": "3"}, "0,1,2,"),
        ("{{range .names}}{{.}};{{end}}", {"names": ["a", "b"]}, "a;b;"),
        ("{{range 3}}x{{end}}", {}, "xxx"),
        ("a {{- .b -}} c", {"b": "-"}, "a-c"),
        ("{{/* a word */}}x", {}, "x"),
        ("{{JSON .v}}", {"v": {"a": 1}}, '{"a":1}'),
        ("{{if and .a (not .b)}}yes{{end}}", {"a": True, "b": False}, "yes"),
    ],
)  # fmt: skip
def test_templates_are_filled(text: str, values: dict[str, object], shown: str) -> None:
    assert Template(text).render(values) == shown


@pytest.mark.parametrize(
    "text", ["{{if .a}}", "{{Nothing .a}}", "{{(.a}}", "{{$unknown}}", "{{.a ? .b}}"]
)
def test_what_is_not_understood_is_said(text: str) -> None:
    with pytest.raises(TemplateError):
        Template(text).render({"a": 1})
