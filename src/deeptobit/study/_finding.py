"""What ``check`` finds."""

from typing import Literal, NamedTuple


class Finding(NamedTuple):
    """Something to look at: a ``warning`` may spoil the model, a ``note`` is good to know."""

    level: Literal["warning", "note"]
    about: str
    message: str
