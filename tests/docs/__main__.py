"""`make docs`: write the commands' help into docs/cli.md, and what commands print into pages."""

from tests.docs.help_pages import PAGE, page_with_help
from tests.docs.outputs import PAGES, page_with_outputs

PAGE.write_text(page_with_help(PAGE.read_text()))
for page in PAGES:
    page.write_text(page_with_outputs(page.read_text()))
