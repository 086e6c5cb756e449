"""The report in a real browser."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from deeptobit.app.report import render_comparison
from deeptobit.app.study import Protocol, evaluate, make_methods
from deeptobit.inspection.heatmaps import PALE
from tests.app.report.browsing import LOADED, find_chromium, find_faults, open_page
from tests.app.report.studies import HOSTILE_TARGET, N_TARGETS, cohort_page, cohort_study
from tests.app.study.evaluations import small_data

# Opacities in the first heat map of the shared directions.
OPACITIES = """async () => {
  const found = document.querySelector("#subspaces svg image"), image = new Image();
  image.src = found.getAttribute("xlink:href") ?? found.getAttribute("href");
  await image.decode();
  const {width, height} = image;
  const canvas = Object.assign(document.createElement("canvas"), {width, height});
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const {data} = context.getImageData(0, 0, width, height);
  return [...new Set([...data].filter((_, k) => k % 4 === 3))];
}"""
SMALLEST = """() => Math.min(...[...document.querySelectorAll("svg[role=img]")].flatMap((svg) => {
  const box = svg.getBoundingClientRect();
  return [box.width, box.height];
}))"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "cohort.html"
    path.write_text(cohort_page(), encoding="utf-8")
    return path.as_uri()


def _column(page: Page, number: int) -> list[str]:
    rows = page.locator("#outcome-table tbody tr").all()
    return [row.locator("th, td").nth(number).inner_text() for row in rows]


@pytest.mark.parametrize(("size", "dark"), [("phone", False), ("desktop", True)])
def test_it_opens_without_a_complaint(
    browser: Browser, address: str, size: str, dark: bool, tmp_path: Path
) -> None:
    opened = open_page(browser, address, size, dark=dark)
    page = opened.page
    page.evaluate("document.querySelectorAll('details').forEach((folded) => folded.open = true)")
    widths = page.evaluate(LOADED)
    assert len(widths) >= N_TARGETS
    assert min(widths) > 0
    assert page.evaluate(SMALLEST) > 60
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, background[4:-1].split(","))) < 200) == dark
    shot = page.screenshot(path=tmp_path / "report.png", full_page=True)
    assert len(shot) > 50_000
    assert opened.complaints == []
    assert opened.refused == []
    page.context.close()


def test_the_table_sorts_by_mouse_and_by_keyboard(browser: Browser, address: str) -> None:
    opened = open_page(browser, address)
    page = opened.page
    before = _column(page, 0)
    button = page.get_by_role("button", name="Sort by R² of the model")
    button.click()
    header = page.locator("th[aria-sort]")
    assert header.get_attribute("aria-sort") == "descending"
    r2 = [float(text.replace("−", "-")) for text in _column(page, 7)]
    assert r2 == sorted(r2, reverse=True)
    assert sorted(_column(page, 0)) == sorted(before)
    assert page.locator("#sorted").inner_text() == "Sorted by R² of the model, descending."
    button.press("Enter")
    assert header.get_attribute("aria-sort") == "ascending"
    assert [float(text.replace("−", "-")) for text in _column(page, 7)] == r2[::-1]
    page.locator("#outcome-table").get_by_label("Sort by Outcome").press("Space")
    assert header.count() == 1
    assert _column(page, 0)[-2:] == ["MMSE_bl", "MOCA_bl"]
    assert opened.complaints == []
    page.context.close()


def test_it_is_readable_without_scripts(browser: Browser, address: str) -> None:
    opened = open_page(browser, address, script=False)
    page = opened.page
    assert len(_column(page, 0)) == N_TARGETS
    assert page.locator("button").count() == 0
    assert page.get_by_role("heading", name="Model card").is_visible()
    page.locator("summary").first.click()
    assert page.locator("details p").first.is_visible()
    assert opened.refused == []
    page.context.close()


def test_nothing_overflows_and_nobody_is_shut_out(browser: Browser, address: str) -> None:
    page = open_page(browser, address).page
    page.evaluate("document.querySelectorAll('details').forEach((folded) => folded.open = true)")
    assert find_faults(page) == []
    page.context.close()


def test_a_wide_figure_can_be_read_on_a_phone(browser: Browser, address: str) -> None:
    page = open_page(browser, address, "phone").page
    figures = page.locator("figure.picture.scroll")
    assert figures.count() >= 2
    for figure in figures.all():
        width = figure.evaluate(
            "(found) => found.querySelector('svg').getBoundingClientRect().width"
        )
        assert width >= 500
    name = page.locator(".components td").nth(1)
    line = float(name.evaluate("(cell) => parseFloat(getComputedStyle(cell).lineHeight)"))
    box = name.bounding_box()
    assert box is not None
    assert box["height"] <= 8 * line  # five names, not cut into letters
    page.context.close()


def test_what_is_not_stable_is_pale_in_the_picture_itself(browser: Browser, address: str) -> None:
    page = open_page(browser, address).page
    opacities = np.array(page.evaluate(OPACITIES)) / 255
    assert np.isclose(opacities, PALE, atol=0.01).any()
    page.context.close()


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> str:
    protocol = Protocol(train_shares=(0.5, 0.8), repeats=2)
    found = evaluate(small_data(), make_methods(["null", "ridge"]), protocol)
    path = tmp_path_factory.mktemp("comparison") / "summary.html"
    path.write_text(render_comparison(found, "cohort"), encoding="utf-8")
    return path.as_uri()


def test_a_comparison_has_the_same_face(browser: Browser, comparison: str) -> None:
    opened = open_page(browser, comparison, dark=True)
    assert find_faults(opened.page) == []
    assert opened.page.locator("td.best").count() > 0
    assert opened.complaints == []
    opened.page.context.close()


def test_a_table_filters_and_downloads(browser: Browser, address: str) -> None:
    page = open_page(browser, address).page
    tools = page.locator(".tools[data-for='outcome-table']")
    tools.get_by_label("Filter").fill("mmse")
    shown = page.locator("#outcome-table tbody tr:visible th")
    assert shown.all_inner_texts() == ["MMSE_bl"]
    with page.expect_download() as waiting:
        tools.get_by_role("button", name="Download CSV").click()
    rows = list(csv.reader(waiting.value.path().read_text(encoding="utf-8").splitlines()))
    assert rows[0][:2] == ["Outcome", "Bounds"]
    assert [row[0] for row in rows[1:]] == list(cohort_study().held_out.table().index)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save as SVG").first.press("Enter")
    drawing = waiting.value.path().read_text(encoding="utf-8")
    assert ElementTree.fromstring(drawing).tag.endswith("svg")
    assert "var(--" not in drawing
    page.context.close()


def test_names_do_not_run(browser: Browser, address: str) -> None:
    page = open_page(browser, address).page
    assert page.locator("script").count() == 1
    assert page.locator("img").count() == 0
    assert page.locator("#outcome-table tbody tr", has_text=HOSTILE_TARGET).count() == 1
    page.context.close()


def test_paper_shows_what_is_folded(browser: Browser, address: str) -> None:
    page = open_page(browser, address).page
    assert page.pdf(format="A4")[:4] == b"%PDF"
    assert page.locator("details:not([open])").count() == 0
    page.context.close()


def test_without_a_browser_the_tests_fail_in_ci_and_skip_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no chromium"):
        find_chromium()
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="no chromium"):
        find_chromium()
