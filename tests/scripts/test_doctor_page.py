from pathlib import Path

import pytest

from scripts import doctor_page


@pytest.mark.parametrize("path", doctor_page.LISTS, ids=lambda path: path.name)
def test_a_document_says_what_the_registry_says(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert doctor_page.START in text
    assert text == doctor_page.renewed(path)
