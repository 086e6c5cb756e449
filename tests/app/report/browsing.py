"""A real browser, the system's chromium, which may load nothing but the page."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

import pytest
from playwright.sync_api import Browser, Page, Route, ViewportSize

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SIZES = {
    "phone": ViewportSize(width=390, height=844),
    "tablet": ViewportSize(width=800, height=1000),
    "desktop": ViewportSize(width=1280, height=900),
}
LOADED = """async () => {
  const sources = [...document.querySelectorAll("image, img")].map(
    (image) => image.getAttribute("xlink:href") ?? image.getAttribute("href") ?? image.src);
  return Promise.all(sources.map(async (source) => {
    const image = new Image();
    image.src = source;
    await image.decode();
    return image.naturalWidth;
  }));
}"""


def find_chromium() -> str:
    """Without it tests are skipped, and fail where ``CI=true``."""
    path = shutil.which("chromium")
    if path is not None:
        return path
    reason = "there is no chromium to open the report in; install the package chromium"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@dataclass
class Opened:
    """A page, and everything that it complained of or asked for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def open_page(
    browser: Browser,
    address: str,
    size: str = "desktop",
    *,
    dark: bool = False,
    script: bool = True,
) -> Opened:
    """Open a page in a window of its own."""
    context = browser.new_context(
        viewport=SIZES[size],
        color_scheme="dark" if dark else "light",
        java_script_enabled=script,
    )
    opened = Opened(context.new_page())

    def guard(route: Route) -> None:
        if route.request.url.startswith(("file:", "data:")):
            route.continue_()
        else:
            opened.refused.append(route.request.url)
            route.abort()

    context.route("**/*", guard)
    opened.page.on("console", lambda message: opened.complaints.append(message.text))
    opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.page.goto(address)
    return opened


# What is wider than the window, or cut off by its own box without a way to scroll there.
OVERFLOWS = """() => {
  const wide = [...document.body.querySelectorAll("*")].filter((element) => {
    if (element.closest("svg") && element.tagName !== "svg") return false;
    const box = element.getBoundingClientRect(), style = getComputedStyle(element);
    if (!box.width || !box.height || style.position === "absolute") return false;
    if (element.closest(".scroll") && !element.matches(".scroll")) return false;
    return box.right > innerWidth + 0.5 || box.left < -0.5;
  });
  const names = wide.map((element) => `${element.tagName}.${element.className} ${element.id}`);
  return document.documentElement.scrollWidth > innerWidth ? [...names, "the page"] : names;
}"""


def find_overflow(page: Page) -> list[str]:
    """Elements that go beyond the edge of the window."""
    return [str(name) for name in page.evaluate(OVERFLOWS)]


@cache
def _axe() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def find_barriers(page: Page) -> list[str]:
    """What axe-core calls a serious or critical barrier, with the element."""
    page.evaluate(_axe())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['id']}: {node['html'][:120]}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def find_faults(page: Page) -> list[str]:
    """Both in the same window: what overflows at any size, barriers at the smallest and largest."""
    faults = []
    for name, size in SIZES.items():
        page.set_viewport_size(size)
        faults += find_overflow(page)
        if name != "tablet":
            faults += find_barriers(page)
    return faults


def count_pages(page: Page) -> int:
    """Sheets of A4 that the page is printed on."""
    return len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4")))
