"""`make docs`: write what is generated into the pages; with `--runs`, also what takes long runs.

Those are the stories and the picture of the README.
"""

import sys

from tests.docs import help_pages, migration, picture, reference, stories
from tests.docs.outputs import PAGES, page_with_outputs

for path, words in help_pages.pages().items():
    path.write_text(help_pages.page_with_help(path, words))
for path, generated in (reference.pages() | migration.pages()).items():
    path.write_text(reference.page_with_reference(path, generated))
for page in PAGES:
    page.write_text(page_with_outputs(page.read_text()))
if "--runs" in sys.argv[1:]:
    picture.PICTURE.write_text(picture.picture())
    for path, story in stories.pages().items():
        path.write_text(stories.page(story))
