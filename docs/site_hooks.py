"""Hooks of mkdocs: build the site from files that are written for the repository.

README.md is the home page, and what pages link to outside docs/ comes along: the examples, the
manifests, the change log. A link is rewritten from where its target is in the repository to where
it is on the site. Lists are nested by two spaces, as everywhere else in the repository.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from markdown import Extension, Markdown
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
_HOME = "README.md"
_PAGES = (
    _HOME,
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "examples/README.md",
)
_LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")
_FENCED = re.compile(r"(^ *```.*?^ *```$)", re.DOTALL | re.MULTILINE)


class _Indentation(Extension):
    """Nest lists by two spaces."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - so it is called
        """Set the parser's indentation."""
        md.tab_length = 2


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the extension for indentation."""
    config.markdown_extensions.append(_Indentation())  # type: ignore[arg-type]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/, and every file outside it that a page links to."""
    for path in _PAGES:
        files.append(_file(path, config))
    for page in [file for file in files if file.is_documentation_page()]:
        for target in _outside(page.content_string, _in_repository(page.src_uri)):
            if files.get_file_from_path(target) is None:
                files.append(_file(target, config))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Rewrite links for the site; what is in a code block is left as it is."""
    here = page.file.src_uri
    return "".join(
        part if part.lstrip().startswith("```") else _rewritten(part, here)
        for part in _FENCED.split(markdown)
    )


def _file(path: str, config: MkDocsConfig) -> File:
    return File.generated(config, _on_site(path), abs_src_path=str(ROOT / path))


def _outside(text: str, page: str) -> set[str]:
    targets = {_resolved(page, link) for link in _LINK.findall(text)}
    return {path for path in targets if not path.startswith("docs/") and (ROOT / path).is_file()}


def _rewritten(text: str, here: str) -> str:
    page = _in_repository(here)

    def moved(link: re.Match[str]) -> str:
        target = _on_site(_resolved(page, link[1]))
        return posixpath.relpath(target, posixpath.dirname(here) or ".")

    return _LINK.sub(moved, text)


def _resolved(page: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link))


def _in_repository(site: str) -> str:
    """Where a file of the site is in the repository."""
    if site == "index.md":
        return _HOME
    return site if (ROOT / site).exists() else f"docs/{site}"


def _on_site(path: str) -> str:
    """Where a file of the repository is on the site."""
    return "index.md" if path == _HOME else path.removeprefix("docs/")
