"""From a study to its model, and to numbers on rows the model has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from deeptobit.estimators import SubspaceNetworkCV
from deeptobit.study._build import StudyData
from deeptobit.study._cross_fit import FoldPrediction, assemble, hold_out
from deeptobit.study._diagnose import diagnose
from deeptobit.study._errors import StudyError
from deeptobit.study._file import Study
from deeptobit.study._finding import Finding
from deeptobit.study._fitted import FittedStudy
from deeptobit.study._folds import check_enough, count_folds, outer_folds
from deeptobit.study._model import make_model
from deeptobit.study._settings_text import settings_text
from deeptobit.study._versions import versions
from deeptobit.targets import CensoredTargets
from deeptobit.threads import one_blas_thread

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[int, int], None]
"""Told how many models are fitted, and of how many."""


def fit_study(
    study: Study,
    data: StudyData,
    *,
    n_jobs: int | None = None,
    progress: Progress = lambda done, total: None,
) -> FittedStudy:
    r"""Fit the model of a study to all rows, and one for every fold to the rows outside it.

    Each of the K + 1 fits chooses its prior, rank and depth by cross-validation on its own rows
    alone, so that no outcome of a held-out row has gone into its prediction; only the family of
    the noise is that of the model of all rows. Rows without any target are left out.

    Parameters
    ----------
    study : Study
    data : StudyData
    n_jobs : int, optional
        Fits side by side; the result does not depend on it.
    progress : callable, optional
        Called with the number of fits that are done, and of all.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import build_data, read_data, read_study
    >>> rng = np.random.default_rng(0)
    >>> age = rng.normal(70.0, 8.0, size=40)
    >>> MMSE = np.clip(np.round(29.0 - 0.3 * (age - 70.0) + rng.normal(size=40)), 0, 30)
    >>> with TemporaryDirectory() as folder:
    ...     rows = [f"{x:.1f},{y:.0f}" for x, y in zip(age, MMSE)]
    ...     _ = Path(folder, "a.csv").write_text("\n".join(["age,MMSE", *rows]))
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text(
    ...         'data.file = "a.csv"\ntargets.MMSE = {lower = 0, upper = 30}\nmodel.max_layers = 1'
    ...     )
    ...     study = read_study(path)
    ...     fitted = fit_study(study, build_data(study, read_data(study)))
    >>> fitted.held_out.table()[["entries", "at_upper", "r2", "null_r2"]].round(1)
            entries  at_upper   r2  null_r2
    target
    MMSE         40       0.6  0.6     -0.2
    """
    started = perf_counter()
    findings = diagnose(study, data)
    data = _with_outcomes(data)
    check_enough(study, data)
    try:
        model, messages, parts = _fit_all(study, data, n_jobs, progress)
    except ValueError as error:
        raise StudyError(f"{data.table.file}: the model cannot be fitted: {error}") from error
    warned = [Finding("warning", "model", message) for message in messages]
    facts = {"folds": len(parts), "seed": study.model.seed, "date": date.today()}
    return FittedStudy(
        model=model,
        encoder=data.encoder,
        name=study.source.path.stem,
        text=settings_text(study),
        held_out=assemble(data.targets, parts, study.evaluation.coverage),
        findings=(*findings, *warned),
        n_groups=None if data.groups is None else len(set(data.groups)),
        facts=versions()
        | {name: str(fact) for name, fact in facts.items()}
        | {"seconds": f"{perf_counter() - started:.1f}"},
        n_rows=len(data.targets),
    )


def _with_outcomes(data: StudyData) -> StudyData:
    """The rows that have a target: the others teach nothing, and might fill a fold."""
    rows = np.flatnonzero(~data.targets.missing.all(axis=1))
    groups = None if data.groups is None else data.groups[rows]
    return replace(data, X=data.X.iloc[rows], targets=data.targets[rows], groups=groups)


def _fit_all(
    study: Study, data: StudyData, n_jobs: int | None, progress: Progress
) -> tuple[SubspaceNetworkCV, list[str], list[FoldPrediction]]:
    """The model, what it warns of, and the predictions of every fold."""
    X, targets, groups = data.X, data.targets, data.groups
    folds = outer_folds(study, data)
    progress(0, len(folds) + 1)
    model, warned = _fit_model(_model(study, groups, len(X)), X, targets, groups, n_jobs)
    progress(1, len(folds) + 1)
    jobs = []
    for fold in folds:
        labels = None if groups is None else groups[fold.train]
        # One family for all rows, or their predictions could not be judged together.
        outside = _model(study, labels, len(fold.train)).set_params(noise=model.noise_)
        jobs.append(delayed(hold_out)(outside, X, targets, groups, fold))
    parts: list[FoldPrediction] = []
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
    for done, part in enumerate(results, start=2):
        parts.append(part)
        progress(done, len(jobs) + 1)
    return model, warned, parts


def _model(study: Study, groups: NDArray[Any] | None, n_rows: int) -> SubspaceNetworkCV:
    """The model of the study, for rows that may have fewer groups than it asks for folds."""
    model = make_model(study)
    model.set_params(cv=count_folds(study, groups, n_rows))
    return model


def _fit_model(
    model: SubspaceNetworkCV,
    X: pd.DataFrame,
    targets: CensoredTargets,
    groups: NDArray[Any] | None,
    n_jobs: int | None,
) -> tuple[SubspaceNetworkCV, list[str]]:
    """The model fitted to all rows, and what it warns of."""
    with one_blas_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.set_params(n_jobs=n_jobs).fit(X, targets, groups=groups)
    model.set_params(n_jobs=None)  # of this machine, not of the model
    return model, list(dict.fromkeys(str(warning.message) for warning in caught))
