"""docs/notation.md speaks of what is there."""

import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = "\n".join(
    path.read_text() for room in ("src", "paper") for path in (ROOT / room).rglob("*.py")
)
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in (ROOT / "docs" / "notation.md").read_text().splitlines()
    if line.startswith("| ") and "name in code" not in line
]
CODE = sorted({name for row in ROWS for name in re.findall(r"`([^`]+)`", row[-1])})


@pytest.mark.parametrize("code", CODE)
def test_every_name_is_in_the_code(code: str) -> None:
    if "/" in code:
        assert (ROOT / code).exists()
        return
    for name in re.findall(r"[A-Za-z_]\w*", code):
        assert re.search(rf"\b{name}\b", SOURCE), f"{name} of {code}"


@pytest.mark.parametrize("code", [code for code in CODE if re.fullmatch(r"[A-Z]\w+\.\w+", code)])
def test_an_attribute_belongs_to_its_class(code: str) -> None:
    owner, attribute = code.split(".")
    bodies = re.findall(rf"^class {owner}\b.*?(?=^class |^def |\Z)", SOURCE, flags=re.M | re.S)
    assert bodies, f"there is no class {owner}"
    assert re.search(rf"^    (def )?{attribute}[(:]", "\n".join(bodies), flags=re.M), code


@pytest.mark.parametrize("code", [code for code in CODE if re.fullmatch(r"[a-z]+(\.\w+)+", code)])
def test_a_dotted_name_can_be_imported(code: str) -> None:
    room, *rest = code.split(".")
    if room == "numpy":
        return
    if room == "paper":
        assert hasattr(import_module(f"paper.{rest[0]}"), rest[1])
        return
    thing = import_module(f"deeptobit.{room}")
    for name in rest:
        thing = getattr(thing, name)


def test_every_row_says_something() -> None:
    assert len(ROWS) > 70
    for row in ROWS:
        assert len(row) in (3, 4), row
        assert row[0], row
        assert row[1], row
