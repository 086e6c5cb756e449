"""The page and the files of a reproduction."""

import json
import re
from dataclasses import asdict, replace
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit.exceptions import MissingExtraError
from paper import drawing
from paper.page import as_markdown, render_page, write_page
from paper.section import (
    SMALL,
    Context,
    FigureOf,
    Section,
    read_section,
    with_settings,
    write_section,
)
from tests.paper.sections import HOSTILE, quick_section

NETWORK = {
    "n_features": 138,
    "n_tasks": 30,
    "layers": [
        {"inputs": 138, "rank": 5, "outputs": 30, "parameters": 815},
        {"inputs": 168, "rank": 5, "outputs": 30, "parameters": 815},
    ],
}
WEIGHTS = {
    "true": np.arange(6.0).reshape(2, 3),
    "predicted": np.arange(6.0).reshape(2, 3) ** 1.1,
    "correlations": np.linspace(0.5, 1.0, 40),
    "threshold": 0.9,
}
BRAIN = {
    "features": ["lh_entorhinal_thickness", "rh_precuneus_thickness", "age"],
    "loadings": np.array([[1.0], [-0.5], [0.2]]),
    "names": ["subspace 1 (100%)"],
    "tasks": ["+ MMSE"],
}


@pytest.fixture(scope="module")
def section() -> Section:
    return quick_section(SMALL, Context())


@pytest.fixture(scope="module")
def page(section: Section) -> str:
    return render_page([section, replace(section, name="other", title="Other section")])


def test_names_do_not_run(page: str) -> None:
    assert "<script" not in page
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" in page
    assert HOSTILE not in page


def test_it_loads_nothing(page: str) -> None:
    assert "default-src 'none'" in unescape(page)
    addresses = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(address.startswith(("#", "data:")) for address in addresses)
    assert "@import" not in page


def test_ids_are_unique(page: str) -> None:
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids)) > 5
    for target in re.findall(r'href="#([^"]*)"', page):
        assert target in ids


def test_every_claim_has_its_verdict_and_all_are_counted(page: str) -> None:
    assert "Of 8 claims of the paper 2 hold, 2 hold only with some constants or in ours, " in page
    assert "Of 2 claims of ours 2 hold, 0 do not, and 0 cannot be told." in page
    # Once in the overview and once in its section; one claim of the paper holds, and one of ours.
    assert page.count('class="verdict holds"') == 8
    assert page.count('class="verdict does-not-hold"') == 4
    assert page.count("holds only with best constants and ours</span>") == 4


def test_the_claims_of_the_paper_are_not_mixed_with_ours(page: str) -> None:
    overview = page[page.index('id="claims"') : page.index('<section id="quick"')]
    papers, ours = overview.split("<h3>What we claim</h3>")
    assert "<td>D</td>" in papers
    assert "<td>E</td>" not in papers
    assert re.findall("<td>([A-Z])</td>", ours) == ["E", "E"]
    row = papers[papers.index("<td>D</td>") :].split("</tr>")[0]
    found = re.findall('class="in-row [^"]*">([^<]*)<', row)
    assert found == ["does not hold", "holds", "holds"]  # published, best constants, ours


def test_a_section_of_before_is_read_with_its_claims(section: Section, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    write_section(path, section)
    state = json.loads(path.read_text(encoding="utf-8"))
    for claim in state["claims"]:
        del claim["by"], claim["row"]
    path.write_text(json.dumps(state), encoding="utf-8")
    again = read_section(path)
    assert {(claim.by, claim.row) for claim in again.claims} == {("the paper", "")}


def test_numbers_are_written_for_people(page: str) -> None:
    assert "−0.20" in page
    assert ">0.1235<" in page
    assert ">–<" in page
    assert ">nan<" not in page


@pytest.mark.parametrize(
    ("kind", "data", "texts"),
    [
        ("network", NETWORK, ["layer 2", "138 features", "R = 5"]),
        ("weights", WEIGHTS, ["task 1", "of tasks above 0.9"]),
        ("brain", BRAIN, ["left lateral", "subspace 1"]),
    ],
)
def test_figures_are_drawn(
    section: Section, kind: str, data: dict[str, object], texts: list[str]
) -> None:
    figure = FigureOf("Caption of it", kind, data)
    page = render_page([replace(section, figures=(figure,))])
    assert "Caption of it" in page
    for text in texts:
        assert text in page
    assert "mathdefault" not in page


def test_settings_stand_under_what_they_are_settings_of(section: Section) -> None:
    figures = with_settings({"N": 111, "σ": 0.5}, section.figures[0])
    tables = with_settings({"N": 222, "<b>": 1}, section.tables[0])
    other = replace(section, name="other", figures=with_settings({"N": 333}, section.figures[0]))
    settings = {"scale": asdict(SMALL), "seed": 0}
    first = replace(section, figures=figures, tables=tables, settings=settings)
    page = render_page([first, replace(other, settings=settings)])
    shown = re.findall(r'<span class="used">(.*?)</span>', page)
    assert shown == ["N = 111 · σ = 0.5", "N = 222 · &lt;b&gt; = 1", "N = 333"]
    assert "A figure" in page[: page.index("N = 111")].rsplit("<figcaption>", 1)[1]
    assert page[: page.index("N = 222")].rstrip().endswith('</div>\n<span class="used">')
    # The sizes of synthetic data are not those of every section.
    end = page[page.index('<section id="settings"') :]
    assert re.findall("<dt>(.*?)</dt>", end)[:4] == ["scale", "seed", "working time", "python"]


def test_settings_are_stored_and_written(section: Section, tmp_path: Path) -> None:
    tables = with_settings({"N": 222}, section.tables[0])
    figures = with_settings({"N": 111}, section.figures[0])
    write_section(tmp_path / "one.json", replace(section, tables=tables, figures=figures))
    again = read_section(tmp_path / "one.json")
    assert (again.tables[0].settings, again.figures[0].settings) == ("N = 222", "N = 111")
    assert "\n\nN = 222\n" in as_markdown(again)


def test_a_missing_extra_is_a_sentence(section: Section, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MissingExtraError("nilearn is not installed")

    monkeypatch.setattr(drawing, "draw_brain_maps", fail)
    figure = FigureOf("Maps", "brain", BRAIN)
    page = render_page([replace(section, figures=(figure,))])
    assert "regions of the cortex, but nilearn is not installed." in page


def test_files_hold_tables_and_figures(section: Section, tmp_path: Path) -> None:
    files = write_page(tmp_path / "out", [section], "quick")
    names = {path.relative_to(tmp_path / "out").as_posix() for path in files}
    assert names == {
        "quick.html",
        "quick.md",
        "tables/quick-1.csv",
        "tables/quick-1.parquet",
        "figures/quick-1.png",
        "figures/quick-1.svg",
    }
    table = pd.read_csv(tmp_path / "out" / "tables" / "quick-1.csv")
    assert table["method"].tolist() == ["SN", HOSTILE]
    assert pd.read_parquet(tmp_path / "out" / "tables" / "quick-1.parquet")["value"].item() == 0.5
    assert (tmp_path / "out" / "figures" / "quick-1.png").read_bytes()[:4] == b"\x89PNG"
    text = (tmp_path / "out" / "quick.md").read_text(encoding="utf-8")
    assert "**does not hold**" in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {4, 7}
    assert "| D **holds only with best constants and ours** | Table 2 |" in text


def test_the_same_section_gives_the_same_page(section: Section) -> None:
    assert render_page([section]) == render_page([section])
