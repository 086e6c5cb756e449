"""From a study to its model, and to numbers on rows the model has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import date
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from deeptobit.app.study.config import (
    AutoSettings,
    NetworkSettings,
    Study,
    TobitSettings,
    settings_text,
)
from deeptobit.app.study.data import StudyData, check_enough, count_folds, outer_folds
from deeptobit.app.study.doctor import Finding, diagnose
from deeptobit.app.study.errors import StudyError
from deeptobit.app.study.fitted import FittedStudy, HeldOut, StudyModel, versions
from deeptobit.app.study.measures import predict_null
from deeptobit.app.study.outcomes import task_bounds
from deeptobit.app.study.predict import predict_rows
from deeptobit.arrays import FloatArray
from deeptobit.auto import Fold
from deeptobit.estimators import (
    AutoTobitRegressor,
    SubspaceNetworkCV,
    SubspaceNetworkRegressor,
    TobitRegressor,
)
from deeptobit.likelihood import Predictive
from deeptobit.targets import CensoredTargets
from deeptobit.threads import one_blas_thread

if TYPE_CHECKING:
    import pandas as pd


# A model for every fold, and what the models say about the rows they have not seen.


@dataclass(frozen=True, eq=False)
class FoldPrediction:
    """Rows of a table, and what models that were fitted without them predict."""

    rows: NDArray[np.intp]
    predictive: Predictive
    null: Predictive
    stages: list[FloatArray]


def hold_out(
    model: StudyModel,
    X: pd.DataFrame,
    targets: CensoredTargets,
    groups: NDArray[Any] | None,
    fold: Fold,
) -> FoldPrediction:
    """Fit the model, and the one without features, outside a fold; predict the rows inside."""
    train, test = targets[fold.train], targets[fold.test]
    limits = test.lower_bounds, test.upper_bounds
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what holds for all rows is said when all rows are fitted
        labels = None if groups is None else groups[fold.train]
        _fit(model, X.iloc[fold.train], train, labels)
        unseen = X.iloc[fold.test]
        by_row: dict[str, Any] = {"lower": test.entry_lower, "upper": test.entry_upper}
        if isinstance(model, TobitRegressor):
            stages = [model.predict(unseen, **by_row)]
        else:
            stages = list(model.staged_predict(unseen, **by_row))
        return FoldPrediction(
            rows=fold.test,
            predictive=predict_rows(model, unseen, *limits),
            null=predict_null(model.noise_, train, test),
            stages=stages,
        )


def assemble(targets: CensoredTargets, parts: Iterable[FoldPrediction], coverage: float) -> HeldOut:
    """All rows in the order of the table, whatever the order of the folds."""
    parts = sorted(parts, key=lambda part: int(part.rows[0]))
    rows = np.concatenate([part.rows for part in parts])
    depth = max(len(part.stages) for part in parts)

    def whole(pieces: Iterable[FloatArray]) -> FloatArray:
        entries = np.empty(targets.shape)
        entries[rows] = np.concatenate(list(pieces))
        return entries

    def joined(predictives: list[Predictive]) -> Predictive:
        return replace(
            predictives[0],
            latent=whole(predictive.latent for predictive in predictives),
            sigma=whole(predictive.sigma for predictive in predictives),
            lower=targets.lower_bounds,
            upper=targets.upper_bounds,
        )

    return HeldOut(
        targets=targets,
        predictive=joined([part.predictive for part in parts]),
        null=joined([part.null for part in parts]),
        stages=tuple(
            whole(part.stages[min(layer, len(part.stages) - 1)] for part in parts)
            for layer in range(depth)
        ),
        coverage=coverage,
    )


# The estimator that a study asks for.

# Of a streamed network: with so many rows time limits the rank, not chance, and beyond this
# tolerance every further pass changes less than a few rows more or less would.
_RANK, _TOLERANCE = 10, 1e-4


def make_model(
    study: Study, *, cv: int | None = None, n_jobs: int | None = None
) -> AutoTobitRegressor | SubspaceNetworkCV | TobitRegressor:
    r"""The unfitted estimator of ``[model]``: its kind with its settings.

    The targets bring their own bounds. ``cv`` replaces the number of folds.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.app.study import read_study
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text('data.file = "a.csv"\ntargets.y = {}\nmodel.noise = "gaussian"')
    ...     make_model(read_study(path))
    AutoTobitRegressor(noise='gaussian', random_state=0)
    """
    settings = study.model
    if isinstance(settings, TobitSettings):
        return TobitRegressor(alpha=settings.alpha, noise=settings.noise)
    common: dict[str, Any] = {
        "cv": settings.cv if cv is None else cv,
        "scoring": settings.scoring,
        "noise": settings.noise,
        "random_state": settings.seed,
        "n_jobs": n_jobs,
    }
    if isinstance(settings, AutoSettings):
        return AutoTobitRegressor(members=settings.members or "auto", **common)
    return SubspaceNetworkCV(
        max_layers=settings.max_layers,
        ranks=settings.ranks,
        alphas=settings.alphas,
        feature_sparsities=settings.feature_sparsities,
        **common,
    )


def make_network(study: Study) -> SubspaceNetworkRegressor:
    r"""An unfitted :class:`SubspaceNetworkRegressor` for rows that are streamed.

    Cross-validation would read the table a hundred times. Rules replace it: the largest of the
    ``ranks``, or 10; the automatic penalty, unless ``alphas`` is a single one; ``max_layers``, or 2
    (1 if ``members`` is ``["stack"]``), of which those that do not pay are undone; Gaussian noise
    unless another family is named.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import read_study
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text('data.file = "a.parquet"\ntargets.y = {upper = 30}')
    ...     network = make_network(read_study(path))
    >>> network.rank, network.n_layers, network.noise, network.upper
    (10, 2, 'gaussian', {'y': 30.0})
    """
    settings, sparsities = study.model, None
    rank, alpha, n_layers = _RANK, None, 2
    if isinstance(settings, TobitSettings):
        raise study.source.error(
            ("model", "kind"),
            'kind = "tobit" needs all rows in memory, and rows of this table are streamed; write '
            'kind = "network", or give more --memory',
        )
    if isinstance(settings, NetworkSettings):
        rank, n_layers = max(settings.ranks or (_RANK,)), settings.max_layers
        alphas, sparsities = settings.alphas, settings.feature_sparsities
        alpha = alphas[0] if alphas and len(alphas) == 1 else None
    elif settings.members == ("stack",):
        n_layers = 1
    if sparsities and min(sparsities) > 0.0:
        raise study.source.error(
            ("model", "feature_sparsities"),
            "feature_sparsities choose features by rows that are all in memory, and rows of this "
            "table are streamed; leave them out, or give more --memory",
        )
    lower, upper = task_bounds(study)
    bounded = bool((np.isfinite(lower) | np.isfinite(upper)).any())
    names = [target.name for target in study.targets]
    return SubspaceNetworkRegressor(
        rank=rank,
        n_layers=n_layers if bounded else 1,  # without bounds any depth is linear
        alpha="auto" if alpha is None else alpha,
        noise="gaussian" if settings.noise == "auto" else settings.noise,
        lower=dict(zip(names, lower.tolist(), strict=True)),
        upper=dict(zip(names, upper.tolist(), strict=True)),
        random_state=settings.seed,
        tol=_TOLERANCE,
    )


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
    ...         'data.file = "a.csv"\ntargets.MMSE = {lower = 0, upper = 30}\n'
    ...         'model.members = ["stack"]'
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
) -> tuple[StudyModel, list[str], list[FoldPrediction]]:
    """The model, what it warns of, and the predictions of every fold."""
    X, targets, groups = data.X, data.targets, data.groups
    folds = outer_folds(study, data)
    progress(0, len(folds) + 1)
    model = make_model(study, cv=count_folds(study, groups, len(X)), n_jobs=n_jobs)
    with one_blas_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _fit(model, X, targets, groups)
    if not isinstance(model, TobitRegressor):
        model.set_params(n_jobs=None)  # of this machine, not of the model
    progress(1, len(folds) + 1)
    jobs = []
    for fold in folds:
        labels = None if groups is None else groups[fold.train]
        outside = make_model(study, cv=count_folds(study, labels, len(fold.train)))
        # One family for all rows, or their predictions could not be judged together.
        outside.set_params(noise=model.noise_)
        jobs.append(delayed(hold_out)(outside, X, targets, groups, fold))
    parts: list[FoldPrediction] = []
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)
    for done, part in enumerate(results, start=2):
        parts.append(part)
        progress(done, len(jobs) + 1)
    return model, list(dict.fromkeys(str(warning.message) for warning in caught)), parts


def _fit(
    model: StudyModel, X: pd.DataFrame, targets: CensoredTargets, groups: NDArray[Any] | None
) -> None:
    if isinstance(model, AutoTobitRegressor | SubspaceNetworkCV):
        model.fit(X, targets, groups=groups)
    else:  # which holds out no rows
        model.fit(X, targets)
