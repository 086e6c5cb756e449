"""One HTML page with every table, figure and claim of the paper, computed again."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from deeptobit import __version__
from deeptobit.experiments.reproduce import Section
from deeptobit.report._reproduction_figures import Drawn, draw
from deeptobit.report._reproduction_tables import count_verdicts, show_table
from deeptobit.report._svg import Picture, as_picture, drawing
from deeptobit.report._templates import environment, template_part

if TYPE_CHECKING:
    from deeptobit.experiments.reproduce import FigureOf

_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'"
)
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def render_reproduction(sections: Sequence[Section]) -> str:
    """One self-contained page: it loads nothing, and has no script.

    Parameters
    ----------
    sections : sequence of Section
        Of :func:`deeptobit.experiments.reproduce.reproduce`.

    Examples
    --------
    >>> from deeptobit.experiments.reproduce import Claim, Section
    >>> claim = Claim("SN is ahead", "Table 2", "yes", "holds", "t-test over 5 repeats, p = 0.01")
    >>> page = render_reproduction([Section("a", "Table A", "What was done.", claims=(claim,))])
    >>> page[page.index("<title>") : page.index("</title>")]
    '<title>Table A, reproduced'
    """
    with drawing():
        shown = [_show(section) for section in sections]
    counts = count_verdicts(sections)
    content = {
        "title": _title(sections),
        "lede": _lede(counts),
        "style": template_part("style.css") + template_part("reproduction.css"),
        "policy": _POLICY,
        "sections": shown,
        "counts": counts,
        "settings": {"Experiments": _settings(sections), "Made with": _facts()},
    }
    return str(environment().get_template("reproduction.html.j2").render(content))


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
        "claims": section.claims,
    }


def _pictures(section: str, number: int, figure: FigureOf) -> tuple[list[Picture], str]:
    found: Drawn = draw(figure)
    pictures = [
        as_picture(one, f"{section}-{number}-{part}", caption, caption)
        for part, (one, caption) in enumerate(found.figures)
    ]
    return pictures, found.note


def _title(sections: Sequence[Section]) -> str:
    if len(sections) == 1:
        return f"{sections[0].title}, reproduced"
    return "The Subspace Network, reproduced"


def _lede(counts: dict[Any, int]) -> str:
    total = sum(counts.values())
    if not total:
        return "There is no claim to be tested here."
    holds, fails, unsure = counts.values()
    return (
        f"Of {total} claims {holds} {'holds' if holds == 1 else 'hold'}, {fails} "
        f"{'does' if fails == 1 else 'do'} not, and {unsure} cannot be told."
    )


def _settings(sections: Sequence[Section]) -> list[tuple[str, str]]:
    settings = sections[0].settings
    if not settings:
        return []
    scale = settings["scale"]
    names = ("name", "n_samples", "n_features", "n_tasks", "rank", "sigma", "repeats")
    entries = [
        (name.replace("_", " ").replace("name", "scale"), str(scale[name])) for name in names
    ]
    seconds = sum(section.seconds for section in sections)
    return [
        *entries,
        ("seed", str(settings["seed"])),
        ("protocol", settings["protocol"]),
        ("working time", _duration(seconds)),
    ]


def _facts() -> list[tuple[str, str]]:
    versions = [(package, version(package)) for package in _PACKAGES]
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    return [
        ("deeptobit", __version__),
        ("python", platform.python_version()),
        *versions,
        ("machine", machine),
    ]


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100.0 else f"{seconds / 60.0:.1f} min"
