"""Write what the doctor looks for into the documentation: ``python -m scripts.doctor_page``.

The page "What can be wrong with a table" and a list in the page of study files are written from the
registry of findings, so that neither can say something else than the command does.
"""

from pathlib import Path

from deeptobit.app.study.doctor.numbers import UNITS
from deeptobit.app.study.doctor.registry import RULES

DOCS = Path(__file__).parents[1] / "docs"
PAGE, STUDY = DOCS / "table.md", DOCS / "study.md"
START, END = "<!-- from the registry of findings -->\n", "<!-- end of the registry -->\n"


def page_list() -> str:
    """All findings with harm and fix, and the units that are recognised."""
    parts = [
        f"## `{kind}`\n\n{one.what}\n\n- **Harm**: {one.harm}\n- **Fix**: {one.fix}\n"
        for kind, one in RULES.items()
    ]
    heading = "| factor | larger number | smaller number | columns |\n|---|---|---|---|\n"
    units = [
        f"| {unit.factor:g} | {unit.larger} | {unit.smaller} | "
        f"{'of such a name' if unit.names else 'all'} |\n"
        for unit in UNITS
    ]
    parts.append(f"## Units that are recognised\n\n{heading}{''.join(units)}")
    return "\n".join(parts)


def study_list() -> str:
    """The list of findings in the page of study files."""
    return "".join(f"- `{kind}`: {one.what}\n" for kind, one in RULES.items())


LISTS = {PAGE: page_list, STUDY: study_list}


def renewed(path: Path) -> str:
    """A page with its list."""
    before, _, rest = path.read_text(encoding="utf-8").partition(START)
    return f"{before}{START}\n{LISTS[path]()}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Write both."""
    for path in LISTS:
        path.write_text(renewed(path), encoding="utf-8")


if __name__ == "__main__":
    main()
