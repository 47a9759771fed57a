"""`make docs`: write the generated parts of pages; with `--runs`, also those that need long runs.

These are the stories and the picture of the README.
"""

import sys

from tests.docs import check_codes, help_pages, migration, picture, reference, stories
from tests.docs.outputs import PAGES, page_with_outputs

for path, words in help_pages.pages().items():
    path.write_text(help_pages.page_with_help(path, words))
for path, generated in (reference.pages() | migration.pages()).items():
    path.write_text(reference.page_with_reference(path, generated))
for page in PAGES:
    page.write_text(page_with_outputs(page.read_text()))
check_codes.PAGE.write_text(check_codes.page_with_codes(check_codes.PAGE.read_text()))
if "--runs" in sys.argv[1:]:
    picture.PICTURE.write_text(picture.picture())
    for path, story in stories.pages().items():
        path.write_text(stories.page(story))
