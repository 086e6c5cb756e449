import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest

from deeptobit.app.report import render_report
from deeptobit.app.report.page import outcome_rows, template_part
from deeptobit.app.report.privacy import published
from deeptobit.app.report.words import cautions
from deeptobit.app.study import (
    FittedStudy,
    Table,
    diagnose,
    predict_table,
    read_data,
    read_study,
)
from deeptobit.app.study import build_data as build
from deeptobit.targets import CensoredTargets
from tests.app.report.studies import (
    HOSTILE,
    HOSTILE_TARGET,
    N_ROWS,
    N_TARGETS,
    SECRET,
    cohort_page,
    cohort_study,
    one_outcome,
)


class Page(HTMLParser):
    """Tags with their attributes, the visible text, and the cells of the table of outcomes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.rows: list[list[str]] = []
        self._in_cell = self._in_outcomes = self._hidden = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._hidden = tag in ("style", "script")
        if tag == "table":
            self._in_outcomes = "sortable" in (dict(attrs)["class"] or "")
        if tag == "tr" and self._in_outcomes:
            self.rows.append([])
        if tag in ("td", "th") and self._in_outcomes:
            self.rows[-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        self.text += data
        if self._in_cell:
            self.rows[-1][-1] += data

    def having(self, attribute: str) -> list[str]:
        return [attrs[attribute] or "" for _, attrs in self.tags if attribute in attrs]


@pytest.fixture(scope="module")
def html() -> str:
    return cohort_page()


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def _with(fitted: FittedStudy, **parts: object) -> FittedStudy:
    return replace(fitted, held_out=replace(fitted.held_out, **parts))  # type: ignore[arg-type]


def test_the_page_refers_to_nothing_outside_itself(html: str, page: Page) -> None:
    links = page.having("href") + page.having("xlink:href") + page.having("src")
    assert links
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in links)
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)
    assert not {"link", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in page.tags}
    policy = next(content for content in page.having("content") if "default-src" in content)
    assert policy.startswith("default-src 'none'")
    assert "unsafe-inline" not in policy.split("script-src")[1]


def test_ids_are_unique_and_links_arrive(html: str, page: Page) -> None:
    ids = Counter(page.having("id"))
    assert max(ids.values()) == 1
    linked = [
        link[1:] for link in page.having("href") + page.having("xlink:href") if link[0] == "#"
    ]
    named = linked + re.findall(r"url\(#([^)]+)\)", html) + page.having("aria-labelledby")
    assert len(named) > 20
    assert set(named) <= ids.keys()


def test_names_are_text_and_nothing_else(html: str, page: Page) -> None:
    assert HOSTILE in page.text
    assert HOSTILE_TARGET in page.text
    assert "体重" in page.text
    assert html.count("<script") == 1
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]


def test_nobody_can_be_recognised(html: str) -> None:
    assert SECRET not in html


def test_the_table_shows_the_numbers_of_the_held_out_rows(page: Page) -> None:
    table = cohort_study().held_out.table()
    rows = page.rows[2 : 2 + N_TARGETS]
    assert len(rows) == N_TARGETS == len(table)
    for shown, (name, row) in zip(rows, table.iterrows(), strict=True):
        assert shown[0].startswith(str(name))
        numbers = [float(text.replace("−", "-").rstrip(" %")) for text in shown[5:]]
        expected = [
            row[f"{of}{measure}"] * (100 if measure == "coverage" else 1)
            for measure in ("mae", "r2", "crps", "coverage")
            for of in ("", "null_")
        ]
        np.testing.assert_allclose(numbers, expected, atol=0.51, rtol=0.01)
        np.testing.assert_allclose(numbers[:4], expected[:4], atol=0.0051)


def test_effects_have_intervals_and_unstable_loadings_are_pale(html: str, page: Page) -> None:
    assert "95 % confidence intervals, from fits to reweighted rows" in page.text
    assert re.search(r"The strongest: .*: [+−][\d.]+ \w+ \[.+, .+\]\.", page.text)
    assert "Pale loadings may have the other sign in another sample of this size." in page.text
    fitted = cohort_study()
    assert fitted.effects is not None
    unknown = np.full_like(fitted.effects.low, np.nan)
    effects = replace(fitted.effects, low=unknown, high=unknown)
    without = Page(render_report(replace(fitted, effects=effects, stable=None)))
    assert "in Python, marginal_effects() of a fitted model computes them" in without.text
    assert "Pale" not in without.text


def test_what_it_says_first(page: Page) -> None:
    table = cohort_study().held_out.table()
    best = table["r2"].idxmax()
    assert (
        f"Across {N_TARGETS} outcomes the model explains {100 * table['r2'].mean():.0f} %"
        in page.text
    )
    assert f"It predicts {best} best (R² {table['r2'].max():.2f})" in page.text
    assert f"from 41 features in {N_ROWS} rows" in page.text
    assert "nor any other row of its group (75 groups kept together)" in page.text
    assert "refitted to all rows" in page.text
    assert "11 are not shown" in page.text
    assert "group 'SUBJECT" not in page.text


def test_the_model_card_tells_settings_versions_and_seed(page: Page) -> None:
    facts = cohort_study().facts
    for name, value in {**facts, "model.ranks": "2", "model.seed": "0", "data.id": "visit"}.items():
        assert name in page.text
        assert value in page.text


def test_every_picture_and_table_is_labelled(page: Page) -> None:
    pictures = [attrs for tag, attrs in page.tags if tag == "svg"]
    assert len(pictures) >= N_TARGETS + 4
    assert all(attrs.get("aria-label") or attrs.get("aria-hidden") == "true" for attrs in pictures)
    headers = [attrs for tag, attrs in page.tags if tag == "th"]
    assert all(attrs.get("scope") in ("row", "col", "colgroup") for attrs in headers)
    assert [tag for tag, _ in page.tags].count("h1") == 1
    assert ("html", {"lang": "en"}) in page.tags


def test_where_the_model_does_not_help_is_said() -> None:
    fitted = cohort_study()
    useless = _with(fitted, predictive=fitted.held_out.null)
    table = useless.held_out.table()
    (said,) = cautions(useless, table)
    assert said.startswith("The features do not help to predict any outcome: R² is not above 0")
    page = Page(render_report(useless))
    assert "the model does not explain the variance" in page.text
    assert "not at all (R²" in page.text
    rows = outcome_rows(table, N_ROWS, 0.9)
    assert all(row.remarks == ["no gain"] for row in rows)
    table.loc["MMSE_bl", ["r2", "crps"]] = 0.2, 0.0
    (said,) = cautions(useless, table)
    assert "MOCA_bl" in said
    assert "MMSE_bl" not in said


def test_an_outcome_of_one_value_is_not_called_unexplained() -> None:
    fitted = cohort_study()
    table = fitted.held_out.table()
    others = cautions(fitted, table)
    table.loc["MMSE_bl", "r2"] = np.nan
    said = cautions(fitted, table)
    assert said[0].startswith("All held-out values of MMSE_bl are the same, so there is")
    assert said[1:] == others


def test_intervals_that_are_too_narrow_are_said() -> None:
    fitted = cohort_study()
    predictive = fitted.held_out.predictive
    sure = _with(fitted, predictive=replace(predictive, sigma=predictive.sigma / 9.0))
    table = sure.held_out.table()
    assert "The 90 % intervals of any outcome are too narrow" in cautions(sure, table)[-1]
    rows = outcome_rows(table, N_ROWS, 0.9)
    assert all("intervals too narrow" in row.remarks for row in rows)
    honest = fitted.held_out.table().assign(coverage=0.9 - 2.9 * 0.3 / np.sqrt(N_ROWS))
    assert not any("narrow" in said for said in cautions(fitted, honest))


def test_counts_under_five_are_not_told() -> None:
    fitted = cohort_study()
    targets = fitted.held_out.targets
    Y = np.full(targets.shape, 5.0) + np.arange(N_ROWS)[:, None] % 3
    Y[:3, 0] = 0.0  # at the lower bound
    Y[: N_ROWS - 2, 1] = 0.0
    Y[:4, 2] = np.nan
    Y[4:, 3] = np.nan
    low = np.zeros(N_TARGETS)
    few = CensoredTargets.from_bounds(Y, low, low + 50.0, names=targets.names)
    page = Page(html := render_report(_with(fitted, targets=few)))
    cells = page.rows[2:]
    assert cells[0][3] == "< 5 rows"
    assert cells[1][3] == "all but < 5 rows"
    assert cells[2][2] == "over 145"
    assert cells[3][2] == "fewer than 5"
    assert f'data-key="{3 / N_ROWS}"' not in html
    assert f'data-key="{round((N_ROWS - 2) / N_ROWS, 6)}"' not in html
    assert 'data-key="146"' not in html
    # A picture of four people is four people.
    assert 'id="outcome4-' in html
    assert 'id="outcome3-' not in html


def test_what_check_found_names_no_group_and_no_small_count(tmp_path: Path) -> None:
    table = [
        "id,who,x,MMSE",
        *(f"{i},{SECRET},{i % 7},{20 + i % 2 if i < 3 else 30}" for i in range(30)),
    ]
    (tmp_path / "a.csv").write_text("\n".join([*table, "90,other,1,30"]))
    study = tmp_path / "study.toml"
    study.write_text(
        '[data]\nfile = "a.csv"\nid = "id"\ngroup = "who"\n[targets.MMSE]\nlower = 0\nupper = 30\n'
    )
    settings = read_study(study)
    findings = diagnose(settings, build(settings, read_data(settings)))
    assert any("only 3 values" in finding.message for finding in findings)
    shown = [remark.message for remark in published(findings)]
    assert len(shown) == len(findings)
    assert "fewer than 5 values lie between its bounds" in shown
    assert "fewer than 5 groups for 5 folds, which never split one: too few" in shown
    assert not any(SECRET in message for message in shown)


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ("", "No outcome has a bound"),
        ("lower = 0\nupper = 2\n", "The outcome is recorded between bounds"),
        ('lower = "limit"\noutside = "clip"\n', "by row – open"),
    ],
)
def test_one_outcome_of_any_kind(bounds: str, said: str) -> None:
    page = Page(render_report(one_outcome(bounds)))
    assert said in page.text
    assert "the variance of y" in page.text
    assert "Similarity of outcomes" not in page.text
    assert "nan" not in page.text.lower().replace("finance", "")


def test_an_outcome_that_does_not_vary_has_no_numbers() -> None:
    fitted = one_outcome("lower = 0\nupper = 2\n")
    same = CensoredTargets.from_bounds(np.ones((40, 1)), 0, 2, names=["y"])
    page = Page(render_report(_with(fitted, targets=same)))
    assert "No outcome varies enough" in page.text
    assert page.rows[2][7] == "–"
    assert "Error by layer" not in page.text


def test_the_same_study_gives_the_same_page_and_leaves_styles_alone(html: str) -> None:
    with matplotlib.rc_context({"axes.facecolor": "black", "text.color": "white", "font.size": 30}):
        again = render_report(cohort_study())
        assert matplotlib.rcParams["font.size"] == 30
    assert again == html


def _schemes() -> dict[str, dict[str, str]]:
    css = template_part("style.css")
    blocks = [
        re.findall(r"--([a-z-]+): (#[0-9a-f]+)", part)
        for part in re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    ]
    light, dark, printed = map(dict, blocks)
    return {"light": light, "dark": dark, "print": light | printed}  # paper changes a few


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = np.array([int(digits[k : k + 2], 16) for k in (0, 2, 4)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
@pytest.mark.parametrize(
    ("ink", "paper", "least"),
    [
        *[(ink, paper, 4.5) for ink in ("text", "muted", "accent") for paper in ("page", "card")],
        ("warn-text", "warn-card", 4.5),
        ("warn-text", "card", 4.5),
        ("text", "bar", 4.5),
        ("vermilion", "card", 3.0),
        ("blue", "card", 3.0),
    ],
)
def test_contrast(scheme: str, ink: str, paper: str, least: float) -> None:
    colours = _schemes()[scheme]
    bright, dark = sorted((_luminance(colours[ink]), _luminance(colours[paper])), reverse=True)
    assert (bright + 0.05) / (dark + 0.05) >= least


def test_a_model_file_of_an_older_version_has_a_report_without_what_it_lacks() -> None:
    older = replace(one_outcome("lower = 0"), ranges=None, effects=None, subgroups=())
    page = render_report(older)
    assert 'id="outcomes"' in page
    assert 'id="effects"' not in page
    assert 'id="parts"' not in page
    rows = Table(pd.DataFrame({"x": [0.0, 9.0]}), "new.csv", np.arange(2, 4))
    assert "outside_the_data" not in predict_table(older, rows)
