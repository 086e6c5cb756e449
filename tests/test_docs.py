"""Every code block in README and docs is run, page by page, as a reader would."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import sync_playwright

from deeptobit.app.study import MEASURES
from scripts.site_docstrings import to_markdown
from tests.app.report.browsing import ARGUMENTS, SIZES, find_chromium
from tests.app.study.cohorts import write_cohort
from tests.pages import Reader, read_blocks, read_commands

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if page.parent.name != "gallery"]  # made from examples/*.py

CLUSTER = "import dask.dataframe\nfrom distributed import Client\n"
# How a command or a Python block begins that is not run with its page, and why.
NOT_RUN = {
    "pip install": "everything is installed, and tests have no network",
    "make ": "targets of the repository, which call these tests",
    "pytest tests/likelihood": "tests/test_extending.py does",
    "python -m paper": "takes minutes to hours; tests/paper makes every section",
    "deeptobit evaluate --dataset adni": (
        "needs data that only an agreement gives; tests/app/cli/test_evaluate.py makes some up"
    ),
    CLUSTER: "needs the address of a cluster; test_the_page_runs_on_a_cluster gives one",
}
# Beside what takes ten seconds: together these would keep `make test` too long.
SLOW = {
    "README.md",
    "docs/brain-maps.md",
    "docs/evaluate.md",
    "docs/guide/rank.md",
    "docs/how-to/clusters.md",
    "docs/how-to/sample-size.md",
    "docs/overview.md",
    "docs/patient-page.md",
    "docs/report.md",
    "docs/study.md",  # tests/app/cli/test_end_to_end.py gives the same commands
    "docs/tutorial.md",
}


@pytest.fixture(autouse=True)
def _restore_measures() -> Iterator[None]:
    """A page adds a measure, which other tests must not see."""
    before = dict(MEASURES)
    yield
    MEASURES.clear()
    MEASURES.update(before)


def write_table(folder: Path) -> None:
    """``cohort.csv`` and, with other people in it, ``new.csv``."""
    write_cohort(folder, n_people=20, seed=1)
    (folder / "cohort.csv").rename(folder / "new.csv")
    write_cohort(folder, n_people=20).unlink()


def write_study(folder: Path) -> None:
    """The same, with a study file under both names that pages use."""
    write_table(folder)
    study = write_cohort(folder).read_text() + "[evaluation]\nrepeats = 1\ntrain_shares = [0.7]\n"
    (folder / "study.toml").write_text(study)


def write_leak(folder: Path) -> None:
    """The same study, with a column that tells an outcome."""
    write_study(folder)
    table = pd.read_csv(folder / "cohort.csv")
    table["total_points"] = table["MMSE"] + np.random.default_rng(0).normal(size=len(table)) / 3
    table.to_csv(folder / "cohort.csv", index=False)


def write_model(folder: Path) -> None:
    """The same, fitted."""
    write_study(folder)
    Reader(folder).run_command("deeptobit fit cohort.toml")


def write_parquet(folder: Path) -> None:
    """``cohort/``: two scores of 300 people with weights; ``visits/``; another study's table."""
    write_cohort(folder)
    rng = np.random.default_rng(0)
    age, volume, health = rng.normal(size=(3, 300))
    table = pd.DataFrame({"age": age, "volume": volume, "weight": rng.uniform(0.5, 1.5, 300)})
    table["MMSE"] = (27.0 + 2.0 * volume - age + rng.normal(size=300) + health).clip(0, 30)
    table["ADAS"] = (8.0 - 3.0 * volume + age + 2.0 * rng.normal(size=300) - health).clip(0, 70)
    (folder / "cohort").mkdir()
    table.to_parquet(folder / "cohort" / "part.parquet")
    person, years = np.repeat(np.arange(100), 4), np.tile(np.arange(4.0), 100)
    own, bad_day = rng.normal(size=100)[person], rng.normal(size=400)
    visits = pd.DataFrame({"person": person, "years": years, "age": age[:100][person] + years})
    visits["MMSE"] = (27.0 - years + own + bad_day + rng.normal(size=400)).clip(0, 30)
    visits["ADAS"] = (9.0 + years - own - bad_day + rng.normal(size=400)).clip(0, 70)
    (folder / "visits").mkdir()
    visits.to_parquet(folder / "visits" / "part.parquet")


# Pages whose blocks another test runs, and looks at what comes of them.
ELSEWHERE = {"docs/use-elsewhere.md": "tests/files/test_documents.py"}
# Files that a page takes for granted.
GIVEN: dict[str, Callable[[Path], None]] = {
    "README.md": write_table,
    "docs/study.md": write_table,
    "docs/evaluate.md": write_model,
    "docs/how-to/sample-size.md": write_model,
    "docs/patient-page.md": write_model,
    "docs/report.md": write_model,
    "docs/scale.md": write_parquet,
    "docs/table.md": write_leak,
}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def is_run(code: str) -> bool:
    return not code.startswith(tuple(NOT_RUN))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, whose modules can be imported."""
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name_of(page), marks=[pytest.mark.slow] * (name_of(page) in SLOW))
        for page in PAGES
        if read_blocks(page) and name_of(page) not in ELSEWHERE
    ],
)
def test_the_page_runs(page: Path, folder: Path) -> None:
    name = name_of(page)
    if name in GIVEN:
        GIVEN[name](folder)
    reader = Reader(page)
    for block in read_blocks(page):
        if block.language in ("", "bash"):
            for command in filter(is_run, read_commands(block)):
                reader.run_command(command)
        elif is_run(block.text) and not (name == "README.md" and block.language == "python"):
            reader.follow(block)  # README's Python is in pytest's testpaths


@pytest.mark.slow
# Dask's own reader of Parquet uses what pandas 3.1 deprecates.
@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_the_page_runs_on_a_cluster(folder: Path) -> None:
    from distributed import LocalCluster

    write_parquet(folder)
    page = ROOT / "docs" / "scale.md"
    start, *later = read_blocks(page)
    (block,) = (block for block in later if block.text.startswith(CLUSTER))
    reader = Reader(page)
    reader.follow(start)
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster:
        here = block.text.replace("tcp://scheduler:8786", cluster.scheduler_address)
        reader.follow(replace(block, text=here))
        answers = reader.names["model"].predict(reader.names["X"]).compute()
        reader.names["client"].close()
    assert answers.shape == (300, 2)


def test_what_is_not_run_is_there() -> None:
    blocks = [block for page in PAGES for block in read_blocks(page)]
    shell = [block for block in blocks if block.language in ("", "bash")]
    code = [command for block in shell for command in read_commands(block)]
    code += [block.text for block in blocks]
    unused = [start for start in NOT_RUN if not any(text.startswith(start) for text in code)]
    assert unused == []


def test_every_page_and_every_example_is_in_the_navigation() -> None:
    _, navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")
    shown = set(re.findall(r"[\w/-]+\.md", navigation))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in PAGES[1:]}
    gallery = {f"gallery/{example.stem}.md" for example in (ROOT / "examples").glob("*.py")}
    assert shown == pages | gallery | {"gallery/index.md"}


def test_docstrings_written_for_sphinx_are_read_as_markdown() -> None:
    docstring = r"""The mean :math:`\mu` of :class:`~deeptobit.CensoredTargets` [1]_.

.. math::
    \frac{a}{b}
        + c

=====  ========
entry  interval
=====  ========
left   low = 0
=====  ========

Parameters
----------
lower, upper : number
.. [1] Tobin"""
    expected = r"""The mean $\mu$ of `deeptobit.CensoredTargets` [1].

$$ \frac{a}{b} + c $$

| entry | interval |
| --- | --- |
| left | low = 0 |

Parameters
----------
lower, upper : number
[1] Tobin"""
    assert to_markdown(docstring).replace("\N{NO-BREAK SPACE}", " ") == expected


CUT = """() => [...document.querySelectorAll("pre > code")].filter(
  (block) => block.scrollWidth > block.clientWidth + 1).map((block) => block.textContent)"""


def find_cut(site: Path) -> list[str]:
    """Pages that are wider than a phone, and those with code that a laptop cuts off."""
    faults = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        page = browser.new_page()
        for file in sorted(site.rglob("*.html")):
            page.set_viewport_size(SIZES["desktop"])
            page.goto(file.as_uri())
            faults += [f"{file.name}: {code}" for code in page.evaluate(CUT)]
            page.set_viewport_size(SIZES["phone"])
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                faults.append(f"{file.name} is wider than a phone")
        browser.close()
    return faults


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(
    tmp_path: Path,
) -> None:
    for command in (["scripts/build_gallery.py"], ["-m", "mkdocs", "build", "-d", str(tmp_path)]):
        whole = [sys.executable, *command]
        run = subprocess.run(whole, cwd=ROOT, check=False, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
    pages = [page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html")]
    assert len(pages) > 50
    for text in pages:
        assert "arithmatex" not in text  # every formula became MathML
        assert re.findall(r"–\s*<div[^>]*>\s*</div>", text) == []  # no dash announces nothing
        assert re.findall(r"<(?:script|img|iframe|source)[^>]+src=[\"']?(?:https?:)?//", text) == []
        assert re.findall(r"<link[^>]+href=[\"']?(?:https?:)?//", text) == []
    assert find_cut(tmp_path) == []
    for sheet in tmp_path.rglob("*.css"):
        assert re.findall(r"url\([\"']?(?:https?:)?//", sheet.read_text(encoding="utf-8")) == []


def test_the_files_that_the_standards_name_exist() -> None:
    text = (ROOT / "docs" / "standards.md").read_text()
    named = re.findall(r"`([\w/.-]+/[\w.-]+\.\w+|[A-Z]+\.\w+)`", text)
    assert len(named) > 40
    assert not [name for name in named if not (ROOT / name).exists()]
