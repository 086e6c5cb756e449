"""The parts of pages, and what fills them in."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from deeptobit.extras import require


@cache
def template_part(name: str) -> str:
    """The text of a file beside the templates."""
    return files("deeptobit.report").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def environment() -> Any:
    """Jinja's environment, which escapes everything that is not said to be safe."""
    jinja2 = require("jinja2", "app")
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(template_part),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
