from pathlib import Path
from types import SimpleNamespace

import pytest
from mkdocs.structure.files import Files

from scripts.site_sources import on_page_markdown


def test_a_file_of_the_repository_is_copied_once_and_linked(tmp_path: Path) -> None:
    plugins = SimpleNamespace(_current_plugin=None)
    config = SimpleNamespace(site_dir=str(tmp_path), use_directory_urls=False, plugins=plugins)
    files = Files([])
    text = "[`a`](../paper/theory.py), [`b`](../../paper/theory.py), [c](../examples/stream.py)"
    found = on_page_markdown(text, config=config, files=files)
    copy = "source/paper/theory.py.txt"
    assert found == f"[`a`]({copy}), [`b`](../{copy}), [c](../examples/stream.py)"
    (file,) = files
    assert file.url == copy
    assert file.content_string.startswith('\ufeff"""Section 2.2')


def test_a_file_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        on_page_markdown("[a](../paper/none.py)", config=None, files=Files([]))
