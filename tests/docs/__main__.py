"""`make docs`: write the commands' help into docs/cli.md."""

from tests.docs.help_pages import PAGE, page_with_help

PAGE.write_text(page_with_help(PAGE.read_text()))
