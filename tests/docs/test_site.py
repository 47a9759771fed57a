"""The site builds without a warning, its links and anchors lead somewhere, nobody else is asked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import sync_playwright

pytestmark = [pytest.mark.whole, pytest.mark.xdist_group("site")]  # it is built once
ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")
_LOADED = re.compile(r"<(?:script|img|source|iframe|link)\b[^>]*?\b(?:src|href)=\"?([^\"\s>]+)")
_EXTERNAL = re.compile(r"<a\b[^>]*?\bhref=\"?(\w+:[^\"\s>]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make site` does."""
    folder = tmp_path_factory.mktemp("site")
    ended = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return folder


def test_nothing_is_loaded_from_others(site: Path) -> None:
    for page in site.rglob("*.html"):
        for source in _LOADED.findall(page.read_text()):
            assert not urlsplit(source).netloc, f"{page.name} loads {source}"


def test_links_to_others_are_whole(site: Path) -> None:
    for page in site.rglob("*.html"):
        for link in _EXTERNAL.findall(page.read_text()):
            assert re.fullmatch(r"https://[\w.-]+\.[a-z]+(/\S*)?", link), f"{page.name}: {link}"


@pytest.mark.skipif(
    CHROMIUM is None, reason="cannot be shown here without chromium (a Debian package)"
)
def test_the_search_needs_neither_server_nor_network(site: Path) -> None:
    """From a file, and with every other request refused."""
    asked: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").as_uri())
        page.get_by_placeholder("Search").click()
        page.keyboard.type("max volume count")
        page.locator(".md-search-result__link").first.wait_for()
        browser.close()
    assert {urlsplit(url).scheme for url in asked} == {"file"}


def test_the_readme_is_the_home_page(site: Path) -> None:
    assert "A bay plan is the drawing" in (site / "index.html").read_text()
