from collections.abc import Iterator
from typing import Any

import pytest

from deeptobit.app.report import pictures


@pytest.fixture(scope="module")
def without_pictures() -> Iterator[None]:
    """Reports whose figures are not rendered, for tests that look at the rest of the page."""

    def empty(figure: Any, name: str, alt: str, caption: str = "") -> pictures.Picture:
        return pictures.Picture("<svg></svg>", 96, caption)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "as_picture", empty)
        yield
