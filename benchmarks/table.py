"""From a CSV file to a report on the command line, as someone with a table would go."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
from playwright.sync_api import Browser, sync_playwright
from python_calamine import load_workbook

from benchmarks.report import Number
from deeptobit import MixedTobitRegressor, SubspaceTobitRegressor, load
from deeptobit.app.report import render_patient_page
from deeptobit.app.study import (
    FittedStudy,
    build_data,
    diagnose,
    fit_study,
    read_data,
    read_study,
    stream_study,
)
from deeptobit.app.study.fitting import make_network
from deeptobit.app.study.stream import HeldOutRows, hash_uniform
from deeptobit.datasets import make_clinical_cohort, make_subspace
from deeptobit.extras import require
from deeptobit.scale import ParquetRows

N_ROWS, N_FEATURES, N_TARGETS, RANK = 1_000, 300, 30, 4
STEPS = (
    ("init", "cohort.csv"),
    ("check", "cohort.toml"),
    ("fit", "cohort.toml", "--jobs", "2"),
    ("report", "cohort.deeptobit"),
)


def measure() -> Iterator[Number]:
    """Seconds of a new user: the help, then the way from a table to a page."""
    with TemporaryDirectory() as folder:
        _deeptobit("--help", folder=folder)  # the first start compiles Python's files
        seconds = min(_deeptobit("--help", folder=folder) for _ in range(3))
        yield Number("seconds of deeptobit --help", seconds, 0.5, "at most")
        write_table(Path(folder, "cohort.csv"))
        seconds = sum(_deeptobit(*step, folder=folder) for step in STEPS)
        size = f"{N_ROWS} × {N_FEATURES} × {N_TARGETS}"
        yield Number(f"CSV to report, seconds for {size}", seconds, 120.0, "at most")
        yield from _reading(Path(folder))
        yield from _saving(Path(folder))
        yield from _streaming(Path(folder))


READ = ((".csv", 100_000, 500), (".xlsx", 20_000, 100))


def _reading(folder: Path) -> Iterator[Number]:
    """Processor time of reading and checking a table, over that of the library that reads it."""
    rng = np.random.default_rng(0)
    for suffix, n_rows, n_columns in READ:
        path = folder / f"numbers{suffix}"
        numbers = rng.normal(size=(n_rows, n_columns)).round(4)
        frame = pd.DataFrame(numbers).add_prefix("x")
        if suffix == ".csv":
            frame.to_csv(path, index=False)
            csv = require("pyarrow.csv", "app")
            library = partial(csv.read_csv, path, csv.ReadOptions(use_threads=False))
        else:
            frame.to_excel(path, index=False)
            library = partial(_read_sheet, path)
        path.with_suffix(".toml").write_text(f'data.file = "{path.name}"\n[targets.x0]\n')
        theirs, ours = _seconds(library), _seconds(partial(_check, path.with_suffix(".toml")))
        title = f"{suffix[1:]} of {n_rows} × {n_columns}, read and checked, over the library's read"
        yield Number(title, ours / theirs, 1.5, "at most")


def _read_sheet(path: Path) -> object:
    return load_workbook(path).get_sheet_by_index(0).to_python()


def _check(path: Path) -> None:
    study = read_study(path)
    diagnose(study, build_data(study, read_data(study)))


def _seconds(call: Callable[[], object]) -> float:
    started = process_time()
    call()
    return process_time() - started


def _saving(folder: Path) -> Iterator[Number]:
    """Milliseconds to save and to load a model of 138 features and 30 targets."""
    cohort = make_clinical_cohort(400, random_state=0)
    model = SubspaceTobitRegressor(5, alpha=0.1, lower=cohort.lower, upper=cohort.upper)
    model.fit(cohort.X, cohort.Y)
    path = folder / "saved.model"
    for title, call in (("save", partial(model.save, path)), ("load", partial(load, path))):
        call()
        best = min(_seconds(call) for _ in range(20))
        yield Number(f"milliseconds to {title} a model of 138 × 30", 1000 * best, 5.0, "at most")


LIMIT = 100  # MB


def _streaming(folder: Path) -> Iterator[Number]:
    """Memory of a fit to a table of four times the limit, and how near its model is."""
    rng = np.random.default_rng(0)
    n_rows = 4 * LIMIT * 10**6 // (8 * 25)
    X = rng.normal(size=(n_rows, 20))
    Y = np.maximum(X @ rng.normal(size=(20, 5)) + rng.normal(size=(n_rows, 5)), 0.0)
    names = [*(f"x{k}" for k in range(20)), *(f"y{k}" for k in range(5))]
    path = folder / "long.parquet"
    pd.DataFrame(np.hstack([X, Y]), columns=names).to_parquet(path, row_group_size=50_000)
    targets = "".join(f"[targets.y{task}]\nlower = 0\n" for task in range(5))
    settings = f'data.file = "{path.name}"\n{targets}[model]\nmembers = ["stack"]\n'
    study = path.with_suffix(".toml")
    study.write_text(settings)
    script = [sys.executable, "-m", "tests.app.study.stream_memory", str(study)]
    write_first(path, folder / "first.parquet")
    run = subprocess.run(
        [*script, str(folder / "first.parquet"), str(path)], capture_output=True, text=True
    )
    added = float(run.stdout.split()[-1])
    yield Number(f"MB to stream a table of {4 * LIMIT} MB", added, float(LIMIT), "at most")
    streamed = stream_study(read_study(study), path).model
    held_out = HeldOutRows.choose(read_study(study), n_rows, None)
    kept = ~np.asarray(hash_uniform(np.arange(n_rows), 0) <= held_out.limit)
    rows = folder / "kept.parquet"
    pd.DataFrame(np.hstack([X, Y])[kept], columns=names).to_parquet(rows)
    source = ParquetRows(rows, targets=names[20:])
    direct = make_network(read_study(study)).fit(source)
    gap = float(np.abs(streamed.coef_ / direct.coef_ - 1.0).max())
    yield Number("relative gap of the streamed model", gap, 1e-8, "at most")


def write_first(path: Path, out: Path) -> None:
    """The first rows of a table, to warm up on."""
    pd.read_parquet(path).head(5_000).to_parquet(out)


def write_table(path: Path) -> None:
    """Scores from 0 to 30 that share four directions of the features, a tenth of them missing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    U = rng.normal(size=(N_FEATURES, RANK)) / np.sqrt(N_FEATURES)
    latent = X @ U @ rng.normal(size=(RANK, N_TARGETS)) + 0.7 * rng.normal(size=(N_ROWS, N_TARGETS))
    scores = pd.DataFrame(np.clip(np.round(15.0 + 6.0 * latent), 0, 30)).add_prefix("mmse_m")
    features = pd.DataFrame(X.round(3)).add_prefix("feature_")
    ids = pd.Series([f"S{row:04d}" for row in range(N_ROWS)], name="subject_id")
    missing = rng.random(scores.shape) < 0.1
    pd.concat([ids, features, scores.mask(missing)], axis=1).to_csv(path, index=False)


def _deeptobit(*arguments: str, folder: str) -> float:
    """Wall seconds of one command in a process of its own."""
    command = [sys.executable, "-m", "deeptobit", *arguments]
    started = perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return perf_counter() - started


# The patient page.

ANSWER = """(field, text) => {
  field.value = text;
  const started = performance.now();
  field.dispatchEvent(new Event("input"));
  document.body.getBoundingClientRect();  // the layout too
  return performance.now() - started;
}"""
FILL = """(fields) => fields.forEach((field) => { field.value ||= "1"; })"""


def pages() -> Iterator[Number]:
    """Size and answer of patient pages for 138 features and 30 scores, in Chromium."""
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for kind, kilobytes, wanted in (("stack", 300.0, 50.0), ("trees", 3000.0, 50.0)):
            page = render_patient_page(_fitted_cohort(Path(folder), kind))
            yield Number(
                f"patient page, {kind}, kB", len(page.encode()) / 1e3, kilobytes, "at most"
            )
            answer = _answer(browser, Path(folder, f"{kind}.html"), page, 0)
            yield Number(f"patient page, {kind}, ms to answer", answer, wanted, "at most")
        page = render_patient_page(_fitted_visits())
        yield Number("patient page, visits, kB", len(page.encode()) / 1e3, 300.0, "at most")
        answer = _answer(browser, Path(folder, "visits.html"), page, 3)
        yield Number("patient page, three past visits, ms to answer", answer, 300.0, "at most")
        browser.close()


def _fitted_cohort(folder: Path, member: str) -> FittedStudy:
    """The simulated cohort, 138 features and 30 scores, with this member of the default alone."""
    cohort = make_clinical_cohort(670, random_state=0)
    cohort.X.join(cohort.Y).to_csv(folder / "cohort.csv", index=False)
    targets = "".join(
        f"[targets.{name}]\nlower = {cohort.lower[name]}\nupper = {cohort.upper[name]}\n"
        for name in map(str, cohort.Y)
    )
    path = folder / "cohort.toml"
    settings = f'data.file = "cohort.csv"\nevaluation.folds = 2\nmodel.members = ["{member}"]\n'
    path.write_text(f"{settings}model.cv = 2\n{targets}")
    study = read_study(path)
    return fit_study(study, build_data(study, read_data(study)))


def _fitted_visits() -> MixedTobitRegressor:
    """Three visits of each of 100 people, as many features and scores."""
    X, Y, _ = make_subspace(100, 137, 30, 3, random_state=0)
    rng, time = np.random.default_rng(0), np.tile([0.0, 6.0, 12.0], 100)
    visits = np.column_stack([np.repeat(X, 3, axis=0), time])
    scores = np.repeat(Y, 3, axis=0) + rng.normal(size=(300, 30))
    options: dict[str, Any] = {"alpha": 1.0, "person_rank": 1, "visit_rank": 1, "shrinkage": 1.0}
    model = MixedTobitRegressor(random_effects="slope", max_iter=20, **options)
    person = np.repeat(np.arange(100), 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the page of an unfinished fit is as large and as fast
        return model.fit(visits, np.clip(scores, 0.0, None), groups=person, time=time)


def _answer(browser: Browser, file: Path, page: str, n_visits: int) -> float:
    """Median milliseconds from a typed number to the drawn predictions."""
    file.write_text(page, encoding="utf-8")
    opened = browser.new_page()
    opened.goto(file.as_uri())
    fields = opened.locator("#values .field input[type=text]")
    fields.evaluate_all(FILL)
    for visit in range(1, n_visits + 1):
        time, *scores = opened.get_by_label(re.compile(f", visit {visit}$")).all()
        time.fill(str(6 * visit))
        for place, score in enumerate(scores):
            score.evaluate("(field, text) => { field.value = text; }", str(place % 7))
    times = [fields.first.evaluate(ANSWER, f"0.{k + 1}") for k in range(20)]
    opened.close()
    return float(np.median(times))
