"""The page of a reproduction in a real browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Browser, expect

from paper.page import render_page
from paper.registry import reproduce
from paper.section import SMALL, Context, FigureOf, Section, TableOf
from tests.app.report.browsing import LOADED, open_page
from tests.paper.sections import HOSTILE, quick_section
from tests.paper.test_page import BRAIN

SHARES = ("40%", "50%", "60%", "70%", "80%")
OVERFLOWING = """() => [...document.querySelectorAll("section table")]
  .filter((table) => table.scrollWidth > table.parentElement.clientWidth
    || table.getBoundingClientRect().right > window.innerWidth)
  .map((table) => table.caption?.textContent ?? "claims")"""


def _wide() -> TableOf:
    """As many columns as the paper's largest table."""
    rows = ["as printed, published constants, 3 layers", "Multi ℓ2,1, censored", HOSTILE[:8]]
    cells = {f"{share}{by}": "0.0369 (0.0012)" for share in SHARES for by in ("", ", paper")}
    base = "paper, over as printed, published constants, 3 layers"
    ratios = {"over ours, defaults": "1.000", base: "diverged"}
    lines = [{"method": row, "splits": "10", **cells, **ratios} for row in rows]
    return TableOf("Methods by share", pd.DataFrame(lines))


def _sections() -> list[Section]:
    quick = quick_section(SMALL, Context())
    maps = FigureOf("Maps", "brain", BRAIN)
    wide = replace(quick, name="wide", title="Wide table", tables=(_wide(),), figures=(maps,))
    return [reproduce("fig-network", SMALL, Context()), quick, wide]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("reproduction") / "index.html"
    path.write_text(render_page(_sections()), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize(("size", "dark"), [("phone", False), ("desktop", True)])
def test_it_opens_without_a_complaint(
    browser: Browser, address: str, size: str, dark: bool, tmp_path: Path
) -> None:
    opened = open_page(browser, address, size, dark=dark)
    page = opened.page
    widths = page.evaluate(LOADED)
    assert len(widths) >= 4  # views of the brain
    assert min(widths) > 0
    pictures = page.locator("svg[role=img]")
    assert pictures.count() == 3
    for picture in pictures.all():
        box = picture.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) > 100
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert len(page.screenshot(path=tmp_path / "page.png", full_page=True)) > 50_000
    assert opened.complaints == []
    assert opened.refused == []
    page.context.close()


def test_brains_are_as_wide_as_the_page_and_every_table_fits_a_desk(
    browser: Browser, address: str
) -> None:
    page = open_page(browser, address).page
    maps = page.locator("#wide svg[role=img]")
    assert maps.count() == 1
    for width in (800, 1920, 1200):
        page.set_viewport_size({"width": width, "height": 900})
        assert maps.evaluate("map => map.closest('figure').clientWidth - map.clientWidth") == 0
    assert page.locator("section table").count() == 9
    assert page.evaluate(OVERFLOWING) == []
    page.context.close()


def test_links_lead_to_sections(browser: Browser, address: str) -> None:
    page = open_page(browser, address).page
    titles = ["Figure 1: the Subspace Network", "Quick section", "Wide table", "Settings"]
    links = page.get_by_role("navigation", name="Sections").get_by_role("link")
    assert links.all_inner_texts() == titles
    for title in titles:
        page.get_by_role("link", name=title).click()
        target = page.locator("section:target")
        assert target.locator("h2").inner_text() == title
        expect(target.locator("h2")).to_be_in_viewport()  # scrolling is smooth: it waits
    page.context.close()


def test_verdicts_are_words_that_are_seen(browser: Browser, address: str) -> None:
    page = open_page(browser, address, script=False).page
    assert page.get_by_text("Of 8 claims of the paper 2 hold, 2 hold only with").is_visible()
    assert page.get_by_text("Of 2 claims of ours 2 hold, 0 do not").is_visible()
    # Of both sections, in the overview and below: one claim each, and "holds" is one of ours too.
    for kind, count in {"holds": 8, "holds-only-with": 4, "does-not-hold": 4}.items():
        badges = page.locator(f".verdict.{kind}")
        assert badges.count() == count
        assert all(badge.is_visible() for badge in badges.all())
        assert all(kind.replace("-", " ") in badge.inner_text() for badge in badges.all())
    assert page.get_by_text(HOSTILE).first.is_visible()
    page.context.close()
