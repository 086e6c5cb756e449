"""Names are text on every page, whatever they are made of."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.race.ours import NAME
from benchmarks.race.page import render
from benchmarks.race.summary import Summary
from benchmarks.report import Number
from deeptobit.app.report.page import environment
from deeptobit.app.study.config import toml_key
from paper.page import render_page, write_page
from paper.section import Claim, FigureOf, Section, TableOf
from tests.privacy.canaries import run

# Closes whatever it stands in, and opens an element and an attribute that no page has.
FILE_NAME = "x\"' x-injected=1 --><x-injected>{{ 7 * 7 }}"
HOSTILE = f"</style></script></svg></td></title>{FILE_NAME}<script>alert(1)</script>"
STUDY = """\
[data]
file = "a.csv"
id = '''{name} id'''
group = '''{name} group'''
[targets.{key}]
column = "y"
lower = 0
upper = 3
[targets."plain"]
column = "z"
[model]
kind = "network"
max_layers = 1
ranks = [1]
alphas = [1.0]
cv = 2
[evaluation]
folds = 2
"""


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def check(page: str, n_scripts: int = 0) -> Elements:
    """No element, attribute or script has come in by a name, and the name is there as text."""
    elements = Elements(page)
    assert "x-injected" not in {tag for tag, _ in elements.found}
    attributes = {name for _, attrs in elements.found for name in attrs}
    assert not [name for name in attributes if name.startswith(("on", "x-"))]
    tags = [tag for tag, _ in elements.found]
    assert tags.count("script") == n_scripts
    assert tags.count("style") == tags.count("title") == 1
    assert FILE_NAME in elements.text
    return elements


def check_markdown(text: str) -> None:
    assert "x-injected" in text
    assert not re.search(r"(?<!\\)<(?=/?(x-injected|script|style))", text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study in which everything that has a name has a hostile one, and its pages."""
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 2)).round(3)
    table = pd.DataFrame(
        {
            f"{HOSTILE} id": [f"{HOSTILE} {row}" for row in range(40)],
            f"{HOSTILE} group": [f"{HOSTILE} {row // 2}" for row in range(40)],
            f"{HOSTILE} feature": x[:, 0],
            "category": np.where(x[:, 1] > 0.3, HOSTILE, "b"),
            "y": (1.5 + x @ [1.0, 0.5] + 0.3 * rng.normal(size=40)).clip(0.0, 3.0).round(3),
            "z": (x @ [1.0, -1.0] + 0.3 * rng.normal(size=40)).round(3),
        }
    )
    table.to_csv(folder / "a.csv", index=False)
    study = folder / f"{FILE_NAME}.toml"
    study.write_text(STUDY.format(name=HOSTILE, key=toml_key(HOSTILE)), encoding="utf-8")
    run("fit", study, "--jobs", 1)
    run("report", study.with_suffix(".deeptobit"))
    run("open", study.with_suffix(".deeptobit"), "--no-show")
    quick = ("--methods", "null,ridge", "--repeats", 1, "--train-shares", 0.7)
    run("evaluate", study, *quick, "--out", folder / "compared")
    return folder


def test_the_report(folder: Path) -> None:
    page = (folder / f"{FILE_NAME}.html").read_text(encoding="utf-8")
    elements = check(page, n_scripts=1)
    for name in (f"{HOSTILE} feature", f"category={HOSTILE}", HOSTILE, f"{HOSTILE} id"):
        assert name in elements.text
    assert "49" not in re.findall(r"<title>(.*?)</title>", page)[0], "a name is no template"


def test_the_patient_page(folder: Path) -> None:
    page = (folder / f"{FILE_NAME}-patient.html").read_text(encoding="utf-8")
    check(page, n_scripts=2)  # the numbers are in an element that does not run


def test_the_card(folder: Path) -> None:
    check_markdown((folder / f"{FILE_NAME}-card.md").read_text(encoding="utf-8"))


def test_the_comparison(folder: Path) -> None:
    elements = check(
        (folder / "compared" / "summary.html").read_text(encoding="utf-8"), n_scripts=1
    )
    assert HOSTILE in elements.text


def _section() -> Section:
    line = {"x": [1.0, 2.0], "y": [1.0, 2.0], "label": HOSTILE}
    panel: dict[str, Any] = {"title": HOSTILE, "xlabel": HOSTILE, "ylabel": HOSTILE}
    panel |= {"lines": [line], "log_x": False, "log_y": False}
    return Section(
        "quick",
        HOSTILE,
        f"{HOSTILE}\n\n{HOSTILE}",
        tables=(TableOf(HOSTILE, pd.DataFrame({HOSTILE: [HOSTILE], "n": [1.0]})),),
        figures=(FigureOf(HOSTILE, "lines", {"panels": [panel]}),),
        claims=(Claim(HOSTILE, HOSTILE, HOSTILE, "holds", HOSTILE),),
    )


def test_the_reproduction(tmp_path: Path) -> None:
    check(render_page([_section()]))
    write_page(tmp_path, [_section()], "quick")
    check_markdown((tmp_path / "quick.md").read_text(encoding="utf-8"))
    (picture,) = (tmp_path / "figures").glob("*.svg")
    tags = {tag for tag, _ in Elements(picture.read_text(encoding="utf-8")).found}
    assert "svg" in tags
    assert not {"x-injected", "script"} & tags


def test_the_race() -> None:
    measures = ("crps", "log_score", "r2", "coverage", "randomised_coverage", "width")
    rest = ("bound_error", "seconds", "megabytes", "at_bound", "centred_anmse")
    frame = pd.DataFrame(
        [
            {"data": f"{HOSTILE} data", "split": split, "name": name, "method": name}
            | {"status": "done", "message": "", "pit": np.array([0.5]), "target": HOSTILE}
            | {"n_train": 30, "n_test": 10, "n_features": 2}
            | {measure: value + 0.1 * split for measure in (*measures, *rest)}
            for name, value in ((NAME, 0.5), (HOSTILE, 0.6))
            for split in range(3)
        ]
    )
    number = Number(HOSTILE, 1.0, 2.0, "at most")
    check(render(Summary(frame), [number], {HOSTILE: HOSTILE}, [(HOSTILE, HOSTILE)]))


def test_templates_escape_by_default() -> None:
    assert environment().autoescape is True
    shown = environment().from_string("{{ name }}").render(name=HOSTILE)
    assert "<" not in shown
    assert '"' not in shown
