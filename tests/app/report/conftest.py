from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.app.report.browsing import ARGUMENTS, find_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for the tests of a module."""
    path = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()
