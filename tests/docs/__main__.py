"""`make docs`: write the commands' help into their pages, and what commands print into others."""

from tests.docs.check_codes import PAGE as CHECK
from tests.docs.check_codes import page_with_codes
from tests.docs.help_pages import page_with_help, pages
from tests.docs.outputs import PAGES, page_with_outputs

for path, words in pages().items():
    path.write_text(page_with_help(path, words))
CHECK.write_text(page_with_codes(CHECK.read_text()))
for page in PAGES:
    page.write_text(page_with_outputs(page.read_text()))
