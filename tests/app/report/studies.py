"""Fitted studies to report on."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from deeptobit.app.report import render_report
from deeptobit.app.study import FittedStudy, build_data, fit_study, read_data, read_study
from deeptobit.datasets import make_clinical_cohort

HOSTILE = '<img src=x onerror=alert(1)> & "$\\frac$"'
HOSTILE_TARGET = "</td><script>alert(2)</script>"
SECRET = "SUBJECT-4711"
QUICK = (
    "[model]\nkind = 'network'\nranks = [2]\nalphas = [1.0]\ncv = 2\nmax_layers = 1\n"
    "[evaluation]\nfolds = 2\n"
)
N_ROWS, N_TARGETS = 150, 6


@cache
def cohort_study() -> FittedStudy:
    """A cohort with ids, pairs of visits, a category and ugly names."""
    cohort = make_clinical_cohort(N_ROWS, random_state=0)
    table = cohort.X.iloc[:, :40].round(3)
    table.columns = [HOSTILE, "体重", *(f"marker {number}" for number in range(2, 40))]
    table["sex"] = np.where(np.arange(N_ROWS) % 3 == 0, "m", "f")
    table.insert(0, "visit", [f"{SECRET}-{row}" for row in range(N_ROWS)])
    table.insert(1, "person", [f"{SECRET}-P{row // 2}" for row in range(N_ROWS)])
    names = list(cohort.Y.columns[:N_TARGETS])
    targets = "".join(
        f"[targets.{HOSTILE_TARGET!r}]\ncolumn = {name!r}\n"
        if name == names[0]
        else f"[targets.{name}]\nlower = {cohort.lower[name]}\nupper = {cohort.upper[name]}\n"
        for name in names
    )
    data = 'id = "visit"\ngroup = "person"\n' + QUICK
    return fit_text(table.join(cohort.Y[names]).to_csv(index=False), data + targets)


@cache
def cohort_page() -> str:
    return render_report(cohort_study())


def fit_text(table: str, study: str) -> FittedStudy:
    """Fit a study given as text; ``[data]`` has been opened."""
    with TemporaryDirectory() as folder:
        Path(folder, "cohort.csv").write_text(table, encoding="utf-8")
        path = Path(folder, "cohort.toml")
        path.write_text(f'[data]\nfile = "cohort.csv"\n{study}', encoding="utf-8")
        settings = read_study(path)
        return fit_study(settings, build_data(settings, read_data(settings)))


@cache
def one_outcome(bounds: str, extra: str = "") -> FittedStudy:
    """Forty rows, one feature, one outcome with some bounds."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    y = np.clip(2.0 * x + rng.normal(size=40), 0.0, 2.0)
    rows = [
        f"{a:.3f},{b:.3f},{0.1 * (i % 3):.1f}" for i, (a, b) in enumerate(zip(x, y, strict=True))
    ]
    table = "\n".join(["x,y,limit", *rows])
    features = '[features]\ninclude = ["x"]\n'
    return fit_text(table, f"{QUICK}{features}[targets.y]\n{bounds}{extra}")
