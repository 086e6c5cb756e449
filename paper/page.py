"""One HTML page with every table, figure and claim of the paper, computed again."""

from __future__ import annotations

import io
import os
import platform
import re
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from importlib.resources import files
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import jinja2

from deeptobit.app.report import as_picture, drawing
from deeptobit.app.study import write_whole
from paper.drawing import draw
from paper.recipes import ROWS
from paper.section import Claimant, FigureOf, Section, TableOf
from paper.verdicts import JudgedClaim, Summary, judged_claims

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Tables and claims, as the page and Markdown show them.

_NUMERIC = set("−-+0123456789.,()%<>≤≥× e–")


class Column(NamedTuple):
    """The name of a column, and its CSS classes."""

    name: str
    css: str


class ShownTable(NamedTuple):
    """A table whose cells are text."""

    caption: str
    columns: list[Column]
    rows: list[list[str]]
    settings: str


def show_table(table: TableOf) -> ShownTable:
    """Cells as text, numbers aligned to the right and the paper's values muted."""
    cells = [
        [_text(value) for value in table.frame.iloc[:, k]] for k in range(table.frame.shape[1])
    ]
    columns = [
        Column(str(name), _css(str(name), column))
        for name, column in zip(table.frame.columns, cells, strict=True)
    ]
    rows = [list(row) for row in zip(*cells, strict=True)]
    return ShownTable(table.caption, columns, rows, table.settings)


LISTS: dict[Claimant, str] = {"the paper": "What the paper claims", "us": "What we claim"}


def count_verdicts(sections: Sequence[Section], by: Claimant) -> dict[Summary, int]:
    """Number of claims of the paper, or of ours, by verdict.

    Examples
    --------
    >>> count_verdicts([], "us")
    {'holds': 0, 'holds only with': 0, 'does not hold': 0, 'cannot be told': 0}
    """
    claims = [claim for section in sections for claim in judged_claims(section.claims, by)]
    found = Counter(claim.summary for claim in claims)
    return {summary: found[summary] for summary in get_args(Summary)}


def conclusion(sections: Sequence[Section], by: Claimant) -> str:
    """How many claims hold, in a sentence; empty if there are none.

    Examples
    --------
    >>> from paper.section import Claim
    >>> claim = Claim("SN is ahead", "Table 2", "yes", "holds", "")
    >>> conclusion([Section("a", "A", "", claims=(claim,))], "the paper")
    'Of 1 claim of the paper 1 holds, 0 hold only with some constants or in ours, 0 do not, and 0 \
cannot be told.'
    """
    counts = count_verdicts(sections, by)
    total = sum(counts.values())
    if not total:
        return ""
    holds, partly, fails, unsure = counts.values()
    whose = "of the paper" if by == "the paper" else "of ours"
    some = f"{partly} {_verb(partly, 'hold')} only with some constants or in ours, "
    return (
        f"Of {total} claim{'s' if total > 1 else ''} {whose} {holds} {_verb(holds, 'hold')}, "
        f"{some if by == 'the paper' or partly else ''}{fails} {_verb(fails, 'do')} not, and "
        f"{unsure} cannot be told."
    )


def _verb(count: int, verb: Literal["hold", "do"]) -> str:
    return {"hold": "holds", "do": "does"}[verb] if count == 1 else verb


def as_markdown(section: Section) -> str:
    """A section without its figures; HTML tags in it are escaped."""
    parts = [f"## {section.title}", section.text]
    for table in section.tables:
        shown = show_table(table)
        parts += [shown.caption, _grid([column.name for column in shown.columns], shown.rows)]
        parts += [shown.settings] if shown.settings else []
    for by, heading in LISTS.items():
        claims = judged_claims(section.claims, by)
        if claims:
            head = ["claim", "paper", "row", "here", "verdict", "test"]
            rows = [line for claim in claims for line in _claim_lines(claim)]
            parts += [heading, _grid(head, rows)]
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", "\n\n".join(parts)) + "\n"


def _claim_lines(claim: JudgedClaim) -> list[list[str]]:
    """One line for each row of a claim; the first of several has the verdict on all of them."""
    whole = f" **{claim.verdict}**" if len(claim.rows) > 1 else ""
    first = [claim.text + whole, claim.rows[0].paper]
    return [
        [*(["", ""] if number else first), c.row, c.ours, f"**{c.verdict}**", c.test]
        for number, c in enumerate(claim.rows)
    ]


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_escaped(cell) for cell in line) + " |" for line in lines)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "–" if isnan(value) else f"{value:.4g}".replace("-", "−")
    text = "" if value is None else str(value)
    return text.replace("-", "−") if _is_number(text) else text


def _css(name: str, cells: Sequence[str]) -> str:
    kind = "number" if all(_is_number(cell) for cell in cells) else "word"
    return f"{kind} paper" if "paper" in name else kind


def _is_number(cell: str) -> bool:
    return set(cell) <= _NUMERIC or cell.startswith("diverged")


_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'"
)
_PACKAGES = ("deeptobit", "numpy", "scipy", "scikit-learn", "numba")
_TEMPLATES = Path(__file__).parent / "templates"


def render_page(sections: Sequence[Section]) -> str:
    """One self-contained HTML page that loads nothing and has no script.

    Examples
    --------
    >>> from paper.section import Claim
    >>> claim = Claim("SN is ahead", "Table 2", "yes", "holds", "t-test over 5 repeats, p = 0.01")
    >>> page = render_page([Section("a", "Table A", "What was done.", claims=(claim,))])
    >>> page[page.index("<title>") : page.index("</title>")]
    '<title>Table A, reproduced'
    """
    with drawing():
        shown = [_show(section) for section in sections]
    ledes = [conclusion(sections, by) for by in LISTS]
    content = {
        "title": _title(sections),
        "lede": " ".join(filter(None, ledes)) or "There is no claim to be tested here.",
        "style": _style(),
        "policy": _POLICY,
        "sections": shown,
        "counts": count_verdicts(sections, "the paper"),
        "lists": LISTS,
        "columns": ROWS,
        "settings": {"All sections": _settings(sections), "Made with": _facts()},
    }
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("reproduction.html.j2").render(content)


def _style() -> str:
    """The style sheet of the package's reports, followed by ours."""
    report = files("deeptobit.app.report").joinpath("templates", "style.css")
    return "".join(sheet.read_text("utf-8") for sheet in (report, _TEMPLATES / "reproduction.css"))


def _show(section: Section) -> dict[str, Any]:
    drawn = [_pictures(section.name, number, f) for number, f in enumerate(section.figures)]
    return {
        "name": section.name,
        "title": section.title,
        "seconds": _duration(section.seconds),
        "paragraphs": section.text.split("\n\n"),
        "pictures": [picture for pictures, _ in drawn for picture in pictures],
        "notes": [note for _, note in drawn if note],
        "tables": [show_table(table) for table in section.tables],
        "claims": {by: judged_claims(section.claims, by) for by in LISTS},
    }


def _pictures(section: str, number: int, figure: FigureOf) -> tuple[list[dict[str, object]], str]:
    """Inline SVG with captions; a picture that is ``wide`` is as wide as the page."""
    found = draw(figure)
    more = {"settings": figure.settings, "wide": figure.kind == "brain"}
    pictures = [
        as_picture(one, f"{section}-{number}-{part}", caption, caption)._asdict() | more
        for part, (one, caption) in enumerate(found.figures)
    ]
    return pictures, found.note


def _title(sections: Sequence[Section]) -> str:
    if len(sections) == 1:
        return f"{sections[0].title}, reproduced"
    return "The Subspace Network, reproduced"


def _settings(sections: Sequence[Section]) -> list[tuple[str, str]]:
    """What all sections share; tables and figures have their own."""
    settings = sections[0].settings
    if not settings:
        return []
    seconds = sum(section.seconds for section in sections)
    return [
        ("scale", settings["scale"]["name"]),
        ("seed", str(settings["seed"])),
        ("working time", _duration(seconds)),
    ]


def _facts() -> list[tuple[str, str]]:
    return [
        ("python", platform.python_version()),
        *((package, version(package)) for package in _PACKAGES),
        ("machine", f"{platform.machine()}, {os.cpu_count()} cores"),
    ]


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100.0 else f"{seconds / 60.0:.1f} min"


# A folder with the page, and every table and figure as files.

_DPI = 200


def write_page(folder: Path, sections: Sequence[Section], name: str) -> list[Path]:
    """Write ``NAME.html``, ``NAME.md``, and a file for every table and figure.

    Tables are CSV as the page shows them, and Parquet with a row per repeat where a table has them;
    figures are PNG and SVG.

    Returns
    -------
    list of Path
        Of the files, the page first.
    """
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    (folder / "figures").mkdir(exist_ok=True)
    page, text = folder / f"{name}.html", folder / f"{name}.md"
    write_whole(page, render_page(sections))
    write_whole(text, "\n".join(as_markdown(section) for section in sections))
    written = [page, text]
    for section in sections:
        written += _write_tables(folder / "tables", section)
        written += _write_figures(folder / "figures", section)
    return written


def _write_tables(folder: Path, section: Section) -> list[Path]:
    files = []
    for number, table in enumerate(section.tables, start=1):
        frame = table.frame if table.data is None else table.data
        path = folder / f"{section.name}-{number}.csv"
        write_whole(path, table.frame.to_csv(index=False))
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        write_whole(path.with_suffix(".parquet"), buffer.getvalue())
        files += [path, path.with_suffix(".parquet")]
    return files


def _write_figures(folder: Path, section: Section) -> list[Path]:
    files: list[Path] = []
    with drawing():
        drawn = [figure for one in section.figures for figure, _ in draw(one).figures]
        for number, figure in enumerate(drawn, start=1):
            path = folder / f"{section.name}-{number}"
            files += [_save(figure, path.with_suffix(kind)) for kind in (".png", ".svg")]
    return files


def _save(figure: Figure, path: Path) -> Path:
    buffer = io.BytesIO()
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(buffer, format=path.suffix[1:], dpi=_DPI, metadata=metadata)
    write_whole(path, buffer.getvalue())
    return path
