"""`make docs`: write the commands' help, what they print, and the reference into their pages."""

from tests.docs import help_pages, migration, reference
from tests.docs.outputs import PAGES, page_with_outputs
from tests.docs.picture import PICTURE, picture

for path, words in help_pages.pages().items():
    path.write_text(help_pages.page_with_help(path, words))
for path, generated in (reference.pages() | migration.pages()).items():
    path.write_text(reference.page_with_reference(path, generated))
for page in PAGES:
    page.write_text(page_with_outputs(page.read_text()))
PICTURE.write_text(picture())
