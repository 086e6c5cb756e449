"""Tobit models of R: each task for itself (AER), and all with a low rank (VGAM)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from benchmarks.race import censored
from benchmarks.race.censored import Censored
from benchmarks.race.forecast import Forecast
from benchmarks.race.problem import Problem
from deeptobit.app.study.methods import fill
from deeptobit.arrays import FloatArray

_OUT_OF_TIME = (-signal.SIGXCPU, 128 + signal.SIGXCPU)  # the latter as a shell says it
_HERE = Path(__file__).parent
_COMPONENTS = (2, 5, 10, 20, 40)
_RANKS = (1, 3)
# Without a penalty, so many rows for every coefficient are the least that a fit is given.
_ROWS_PER_FEATURE = 3


@dataclass(frozen=True, eq=False)
class FittedLines:
    """Linear latent scores with normal noise: X @ coef + intercept + sigma · ε."""

    coef: FloatArray
    intercept: FloatArray
    sigma: FloatArray
    lower: FloatArray
    upper: FloatArray
    held_out: None = None

    def predict(self, X: FloatArray) -> Forecast:
        """Normal distributions, and their means within the bounds."""
        latent = norm(X @ self.coef + self.intercept, self.sigma)
        return Forecast(censored.mean(latent, self.lower, self.upper), latent)


class _Job(NamedTuple):
    """A fit to some rows, on leading principal components of their features."""

    rows: NDArray[np.intp]
    n_components: int
    rank: int


def fit_aer(problem: Problem) -> FittedLines:
    """A Tobit of every task on leading principal components.

    Their number is chosen for every task by the held-out log score; all of them are among the
    choices where there are three rows for every feature. Rows without a value are dropped.
    """
    most = max(1, min(len(train) for train, _ in problem.folds) // _ROWS_PER_FEATURE)
    numbers = sorted({min(n, most) for n in (*_COMPONENTS, problem.X.shape[1])})
    jobs = [[_Job(rows, n, 0) for rows in _all_rows(problem)] for n in numbers]
    fits = _run("aer_tobit.R", problem, jobs)
    best = np.argmin([_nll(problem, fit) for fit in fits], axis=0)
    tasks = np.arange(len(best))
    whole = [fit[-1] for fit in fits]
    return FittedLines(
        np.stack([fit.coef for fit in whole])[best, :, tasks].T,
        np.stack([fit.intercept for fit in whole])[best, tasks],
        np.stack([fit.sigma for fit in whole])[best, tasks],
        problem.lower,
        problem.upper,
    )


def fit_vgam(problem: Problem) -> FittedLines:
    """A Tobit of all tasks whose rank is chosen by the held-out log score.

    It acts on all features where every task has three rows between its bounds for each of them (it
    cannot start otherwise), on the leading principal components elsewhere. Ridge regressions fill
    missing outcomes.
    """
    n_components = min(problem.X.shape[1], max(1, _fewest_inside(problem) // _ROWS_PER_FEATURE))
    ranks = sorted({min(rank, n_components, problem.Y.shape[1]) for rank in _RANKS})
    jobs = [[_Job(rows, n_components, rank) for rows in _all_rows(problem)] for rank in ranks]
    filled = np.clip(fill(problem.X, problem.Y), problem.lower, problem.upper)
    fits = _run("vgam_tobit.R", problem._replace(Y=filled), jobs)
    return min(fits, key=lambda fit: float(_nll(problem, fit).sum()))[-1]


def r_has(package: str) -> Callable[[], str | None]:
    """A question for the race: None if R has the package, otherwise what is missing."""

    def reason() -> str | None:
        if shutil.which("Rscript") is None:
            return "R is not installed (Debian: r-base-core)"
        found = subprocess.run(
            ["Rscript", "-e", f"quit(status = !requireNamespace('{package}', quietly = TRUE))"],
            capture_output=True,
            check=False,
        )
        if found.returncode == 0:
            return None
        return f"R's package {package} is not installed (Debian: r-cran-{package.lower()})"

    return reason


def _fewest_inside(problem: Problem) -> int:
    """Rows between the bounds in what a fold trains on, of the task with the fewest."""
    inside = np.logical_and(problem.lower < problem.Y, problem.upper > problem.Y)
    return min(int(inside[train].sum(axis=0).min()) for train, _ in problem.folds)


def _all_rows(problem: Problem) -> list[NDArray[np.intp]]:
    """Rows of every fold, then all rows."""
    return [*(train for train, _ in problem.folds), np.arange(len(problem.X))]


def _nll(problem: Problem, fits: Sequence[FittedLines]) -> FloatArray:
    """Held-out censored log score of every task, (T,)."""
    total = np.zeros(problem.Y.shape[1])
    for fit, (_, test) in zip(fits, problem.folds, strict=False):  # the last fit has no fold
        latent = norm(problem.X[test] @ fit.coef + fit.intercept, fit.sigma)
        clipped = Censored(latent, problem.lower, problem.upper)
        total += np.nansum(clipped.log_score(problem.Y[test]), axis=0)
    return total


def _run(script: str, problem: Problem, jobs: list[list[_Job]]) -> list[list[FittedLines]]:
    """Fit all jobs in one process of R."""
    with TemporaryDirectory() as temporary:
        root = Path(temporary)
        folders, back = [], []
        for number, job in enumerate(job for row in jobs for job in row):
            folders.append(root / str(number))
            back.append(_write(folders[-1], problem, job))
        _call(_HERE / script, folders)
        fits = iter([_read(*pair, problem) for pair in zip(folders, back, strict=True)])
    return [[next(fits) for _ in row] for row in jobs]


def _call(script: Path, folders: Sequence[Path]) -> None:
    done = subprocess.run(
        ["Rscript", str(script), *map(str, folders)], capture_output=True, text=True, check=False
    )
    if done.returncode in _OUT_OF_TIME:  # which is that of this process too
        os.kill(os.getpid(), signal.SIGXCPU)
    if done.returncode:
        said = done.stderr.strip()[-500:] or "nothing was said"
        raise RuntimeError(f"{script.name} ended with status {done.returncode}: {said}")


def _write(folder: Path, problem: Problem, job: _Job) -> FloatArray:
    """Write one job, and return the matrix that turns its coefficients into those of X."""
    folder.mkdir()
    X = problem.X[job.rows]
    _, lengths, directions = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    kept = directions[: min(job.n_components, int((lengths > 1e-9 * lengths[0]).sum()))].T
    tables = {
        "X": X @ kept,
        "Y": problem.Y[job.rows],
        "bounds": np.array([problem.lower, problem.upper]),
        "rank": np.array([[job.rank]]),
    }
    for name, table in tables.items():
        text = np.char.mod("%.17g", table)
        text[np.isnan(table)] = "NA"
        np.savetxt(folder / f"{name}.csv", text, fmt="%s", delimiter=",")
    return kept


def _read(folder: Path, kept: FloatArray, problem: Problem) -> FittedLines:
    estimates = np.loadtxt(folder / "coef.csv", delimiter=",", ndmin=2)
    sigma = np.loadtxt(folder / "sigma.csv", delimiter=",", ndmin=1)
    return FittedLines(kept @ estimates[1:], estimates[0], sigma, problem.lower, problem.upper)
