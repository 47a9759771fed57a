"""`make docs`: write the commands' help into their pages, and what commands print into others."""

from tests.docs.help_pages import page_with_help, pages
from tests.docs.outputs import PAGES, page_with_outputs

for path, words in pages().items():
    path.write_text(page_with_help(path, words))
for page in PAGES:
    page.write_text(page_with_outputs(page.read_text()))
