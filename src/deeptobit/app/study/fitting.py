"""Fit the model of a study, and test it on held-out rows."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date
from time import perf_counter
from typing import Any, Literal

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from deeptobit import auto, estimators
from deeptobit.app.study import columns, config, effects, formats, visits
from deeptobit.app.study.data import StudyData, check_enough, task_bounds
from deeptobit.app.study.doctor.registry import Finding, diagnose
from deeptobit.app.study.fitted import FittedStudy, predict_rows
from deeptobit.app.study.measures import HeldOut
from deeptobit.arrays import FloatArray
from deeptobit.estimators.base import CensoredRegressor
from deeptobit.likelihood import Gaussian, Noise, Predictive, of_task, with_one_spread
from deeptobit.runtime import one_blas_thread
from deeptobit.targets import CensoredTargets

# Predictions for held-out rows.


def fit_rows(model: CensoredRegressor, data: StudyData) -> None:
    """Fit a model to the data of a study, on one core."""
    given = {"groups": data.groups, "time": data.time}
    options: Any = {name: given[name] for name in given if has_fit_parameter(model, name)}
    with one_blas_thread():
        model.fit(data.X, data.targets, **options)


def predict_fold(
    model: CensoredRegressor, data: StudyData, fold: auto.Fold, coverage: float
) -> tuple[HeldOut, pd.DataFrame | None]:
    """Fit the model and the null model outside a fold, and predict the rows inside.

    A mixed model forecasts them from earlier visits; then errors by horizon are the second result.
    """
    hidden, errors = data.where(fold.test), None
    with warnings.catch_warnings(action="ignore"):  # the fit to all rows warns
        fit_rows(model, data.where(fold.train))
        if isinstance(model, estimators.MixedTobitRegressor) and data.time is not None:
            errors = visits.forecast_errors(model, data, fold)
        return predict_test_rows(model, hidden, data.targets[fold.train], coverage), errors


def predict_test_rows(
    model: CensoredRegressor, data: StudyData, training: CensoredTargets, coverage: float
) -> HeldOut:
    """Predictions of a fitted model, and of the null model of its training rows."""
    targets = data.targets
    bounds = targets.lower_bounds, targets.upper_bounds
    predictive = predict_rows(model, data.X, *bounds, data.groups)
    stages = [predictive.mean()]
    if hasattr(model, "staged_predict"):
        by_row: dict[str, Any] = {"lower": targets.entry_lower, "upper": targets.entry_upper}
        stages = list(model.staged_predict(data.X, **by_row))
    with warnings.catch_warnings(action="ignore"):  # the fit has warned of what concerns all rows
        null = predict_null(model.noise_, training, targets)
    return HeldOut(targets, predictive, null, tuple(stages), coverage)


def fit_null(targets: CensoredTargets) -> estimators.TobitRegressor:
    """The censored normal distribution of every task, without features."""
    # A feature that is 0 everywhere, under a penalty, leaves only intercepts and scales.
    return estimators.TobitRegressor(alpha=1.0).fit(np.zeros((len(targets), 1)), targets)


def predict_null(noise: Noise, train: CensoredTargets, test: CensoredTargets) -> Predictive:
    """Predictive distributions of the null model: the same for every row of ``test``.

    Its noise is of the given family. Tasks without a value between the bounds in ``train`` have
    the quartiles of a Gaussian fit.
    """
    null = fit_null(train)
    level = np.broadcast_to(null.intercept_, train.shape)
    free = np.asarray(train.observed.any(axis=0))
    weight = np.ones(len(train))
    scores = auto.HeldOutScores.build(level, train, weight, null.sigma_, free, fit_intercept=True)
    noise = with_one_spread(noise)
    found, _ = auto.fit_error_model(scores, (noise,))
    families = [of_task(noise, task) for task in range(train.shape[1])]
    matched = auto.match_quartiles(found, [Gaussian()] * len(families), families)
    pairs = zip(found, matched, strict=True)
    found = auto.Recalibration(*(np.where(free, *pair) for pair in pairs))
    latent = np.broadcast_to(found.intercept + found.slope * null.intercept_, test.shape)
    sigma = np.broadcast_to(found.sigma, test.shape)
    return Predictive(noise, latent, sigma, test.lower_bounds, test.upper_bounds)


def join_folds(
    targets: CensoredTargets, folds: Iterable[auto.Fold], parts: Sequence[HeldOut]
) -> HeldOut:
    """Predictions of all held-out rows in the order of the table; the parts are of the folds."""
    rows = np.concatenate([fold.test for fold in folds])
    order = np.argsort(rows)
    targets = targets[rows[order]]

    def join(pieces: Iterable[FloatArray]) -> FloatArray:
        return np.concatenate(list(pieces))[order]

    def join_predictive(found: Sequence[Predictive]) -> Predictive:
        latent, sigma = join(y.latent for y in found), join(y.sigma for y in found)
        lower, upper = targets.lower_bounds, targets.upper_bounds
        return replace(found[0], latent=latent, sigma=sigma, lower=lower, upper=upper)

    predictive = join_predictive([part.predictive for part in parts])
    null = join_predictive([part.null for part in parts])
    stages = (
        join(part.stages[min(layer, len(part.stages) - 1)] for part in parts)
        for layer in range(max(len(part.stages) for part in parts))
    )
    return HeldOut(targets, predictive, null, tuple(stages), parts[0].coverage)


# The estimator of a study.

# Of a streamed network: with so many rows the rank is limited by time, not by noise, and below this
# tolerance a further pass changes less than a few rows more or less would.
_RANK, _TOLERANCE = 10, 1e-4


def make_model(
    study: config.Study, *, cv: int | Literal["auto"] | None = None, n_jobs: int | None = None
) -> estimators.AutoTobitRegressor | estimators.SubspaceNetworkCV | estimators.TobitRegressor:
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
    AutoTobitRegressor(cv=5, noise='gaussian', random_state=0)
    """
    settings = study.model
    if isinstance(settings, config.MixedSettings):
        what = 'kind = "mixed" forecasts people from their visits: fit measures it on last visits'
        do = 'to compare methods on other people write kind = "auto"'
        raise study.source.error(("model", "kind"), f"{what}; {do}")
    if isinstance(settings, config.TobitSettings):
        return estimators.TobitRegressor(alpha=settings.alpha, noise=settings.noise)
    options = settings.options() | {"cv": settings.cv if cv is None else cv, "n_jobs": n_jobs}
    if isinstance(settings, config.NetworkSettings):
        return estimators.SubspaceNetworkCV(**options)
    return estimators.AutoTobitRegressor(**options | {"members": settings.members or "auto"})


def make_network(study: config.Study) -> estimators.SubspaceNetworkRegressor:
    r"""An unfitted :class:`SubspaceNetworkRegressor` for rows that are streamed.

    Cross-validation would read the table a hundred times. Rules replace it: the largest of the
    ``ranks``, or 10; the automatic penalty, unless ``alphas`` is a single one; ``max_layers``, or 2
    (1 if ``members`` is ``["stack"]``), of which those that do not help are pruned; Gaussian noise
    unless another family is named.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.app.study import read_study
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text('data.file = "a.parquet"\ntargets.y = {upper = 30}')
    ...     network = make_network(read_study(path))
    >>> network.rank, network.n_layers, network.noise, network.upper
    (1, 2, 'gaussian', {'y': 30.0})
    """
    settings, in_memory = study.model, None
    rank, n_layers = min(_RANK, len(study.targets)), 2  # a larger rank is for nothing
    alphas: tuple[float, ...] = ()
    if isinstance(settings, config.NetworkSettings):
        rank, n_layers = max(settings.ranks or (rank,)), settings.max_layers
        alphas = settings.alphas or ()
        sparse = min(settings.feature_sparsities or (0.0,)) > 0.0
        in_memory = "feature_sparsities" if sparse else None
    elif isinstance(settings, config.AutoSettings):
        n_layers = 1 if settings.members == ("stack",) else 2
    else:
        in_memory = "kind"
    if in_memory is not None:
        setting = f"{in_memory} = {config.toml_value(getattr(settings, in_memory))}"
        what = f"{setting} needs all rows in memory, and the rows of this table are streamed"
        do = 'write kind = "network" without it, or allow more --memory'
        raise study.source.error(("model", in_memory), f"{what}; {do}")
    lower, upper = task_bounds(study)
    bounded = bool((np.isfinite(lower) | np.isfinite(upper)).any())
    names = [target.name for target in study.targets]
    return estimators.SubspaceNetworkRegressor(
        rank=rank,
        n_layers=n_layers if bounded else 1,  # without bounds any depth is linear
        alpha=alphas[0] if len(alphas) == 1 else "auto",
        noise="gaussian" if settings.noise == "auto" else settings.noise,
        lower=dict(zip(names, lower.tolist(), strict=True)),
        upper=dict(zip(names, upper.tolist(), strict=True)),
        random_state=settings.seed,
        tol=_TOLERANCE,
    )


# Called with the number of models that are fitted, and of all.
Progress = Callable[[int, int], None]


def fit_study(
    study: config.Study,
    data: StudyData,
    *,
    findings: Sequence[Finding] | None = None,
    n_jobs: int | None = None,
    progress: Progress = lambda done, total: None,
) -> FittedStudy:
    r"""Fit the model of a study to all rows, and one for every fold to the rows outside it.

    Each of the K + 1 fits chooses its prior, rank and depth by cross-validation on its own rows
    only, so that the prediction of a held-out row does not depend on its outcome. Only the noise
    family is that of the model of all rows. Rows without outcomes are left out.

    Parameters
    ----------
    study : Study
    data : StudyData
    findings : sequence of Finding, optional
        What is known of the data; by default :func:`diagnose` looks.
    n_jobs : int, optional
        Fits side by side; the result does not depend on it.
    progress : callable, optional
        Called with the number of fits that are done, and of all.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.app.study import build_data, read_data, read_study
    >>> rng = np.random.default_rng(0)
    >>> age = rng.normal(70.0, 8.0, size=40)
    >>> MMSE = np.clip(np.round(29.0 - 0.3 * (age - 70.0) + rng.normal(size=40)), 0, 30)
    >>> with TemporaryDirectory() as folder:
    ...     rows = [f"{x:.1f},{y:.0f}" for x, y in zip(age, MMSE)]
    ...     _ = Path(folder, "a.csv").write_text("\n".join(["age,MMSE", *rows]))
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text(
    ...         'data.file = "a.csv"\ntargets.MMSE = {lower = 0, upper = 30}\n'
    ...         'model.members = ["stack"]\nmodel.cv = 2'
    ...     )
    ...     study = read_study(path)
    ...     fitted = fit_study(study, build_data(study, read_data(study)))
    >>> fitted.held_out.table()[["entries", "at_upper", "r2", "null_r2"]].round(1)
            entries  at_upper   r2  null_r2
    target
    MMSE         40       0.6  0.6     -0.1
    """
    started = perf_counter()
    findings = diagnose(study, data) if findings is None else findings
    # Rows without outcomes could fill a whole fold.
    data = data.where(np.flatnonzero(~data.targets.missing.all(axis=1)))
    check_enough(study, data)
    with formats.as_study_error(f"{data.table.file}: the model cannot be fitted: "):
        model, warned, folds, held_out, forecasts = _fit_all(study, data, n_jobs, progress)
    seconds = perf_counter() - started
    tested = data.where(np.sort(np.concatenate([fold.test for fold in folds])))
    labels = None if tested.groups is None else (str(study.data.group), tested.groups)
    return describe_fit(
        study,
        model,
        data,
        n_jobs,
        held_out=held_out,
        findings=(*findings, *too_good(held_out), *warned),
        facts={"folds": str(len(folds)), "seconds": f"{seconds:.1f}"},
        n_rows=len(data.targets),
        n_groups=data.n_groups,
        subgroups=effects.measure_parts(held_out, tested.X, data.encoder, labels),
        forecasts=forecasts,
    )


def describe_fit(
    study: config.Study,
    model: CensoredRegressor,
    data: StudyData,
    n_jobs: int | None = None,
    *,
    facts: dict[str, str],
    **about: Any,
) -> FittedStudy:
    """A fitted model with its settings and versions, and where the features lie and what they do.

    ``data`` are rows to learn the latter from, those of the fit if it was in memory; ``about`` are
    the other attributes of the fitted study.
    """
    versions = config.versions() | {"seed": str(study.model.seed), "date": str(date.today())}
    resampling = {"groups": data.groups, "n_jobs": n_jobs}
    return FittedStudy(
        model=model,
        encoder=data.encoder,
        name=study.source.path.stem,
        text=config.settings_text(study),
        facts=versions | facts,
        ranges=effects.learn_ranges(data.X, data.encoder),
        effects=effects.learn_effects(model, data.X, data.encoder, **resampling),
        stable=effects.stable_loadings(model, data.X, **resampling),
        **about,
    )


def _fit_all(
    study: config.Study, data: StudyData, n_jobs: int | None, progress: Progress
) -> tuple[CensoredRegressor, list[Finding], list[auto.Fold], HeldOut, list[dict[str, float]]]:
    """The model of all rows, its warnings, the folds, their predictions, and errors by horizon."""
    if isinstance(study.model, config.MixedSettings):
        data = replace(data, time=visits.read_times(study, data.X))
        folds = visits.last_visits(study, data)
    else:
        n_folds = _count_folds(study, data)
        folds = list(auto.make_folds(len(data.X), n_folds, data.groups, study.model.seed))
    progress(0, len(folds) + 1)
    model = _make_for(study, data, n_jobs)
    with warnings.catch_warnings(record=True, action="always") as caught:
        fit_rows(model, data)
    if "n_jobs" in model.get_params():
        model.set_params(n_jobs=None)  # a setting of this machine, not of the model
    progress(1, len(folds) + 1)
    jobs = []
    featureless = replace(data, X=data.X.iloc[:, :0])  # to count rows without a copy of X
    # Workers need no table.
    rows = replace(data, table=data.table.where(np.zeros(len(data.table), dtype=np.bool_)))
    for fold in folds:
        outside = _make_for(study, featureless.where(fold.train))
        if not isinstance(outside, estimators.MixedTobitRegressor):
            # One noise family for all folds, or their predictions could not be scored together.
            outside.set_params(noise=model.noise_)
        jobs.append(delayed(predict_fold)(outside, rows, fold, study.evaluation.coverage))
    found = []
    for of_fold in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
        found.append(of_fold)
        progress(len(found) + 1, len(folds) + 1)
    parts, errors = zip(*found, strict=True)
    forecasts = [] if data.time is None else visits.by_horizon(errors)
    return model, as_findings(caught), folds, join_folds(data.targets, folds, parts), forecasts


def _make_for(study: config.Study, data: StudyData, n_jobs: int | None = None) -> CensoredRegressor:
    """The unfitted estimator for some rows, which decide on its folds."""
    if isinstance(study.model, config.MixedSettings):
        return visits.make_mixed(study)
    # One held-out part is enough to choose by where rows are many.
    many = isinstance(study.model, config.AutoSettings) and len(data.X) > auto.MANY_ROWS
    return make_model(study, cv="auto" if many else _count_folds(study, data), n_jobs=n_jobs)


def _count_folds(study: config.Study, data: StudyData) -> int:
    """As many folds as the study asks for, if there are as many rows or groups."""
    return min(study.model.cv, data.n_groups or len(data.X))


_TOO_GOOD = 0.98  # R² on held-out rows


def too_good(held_out: HeldOut) -> list[Finding]:
    """Targets that are predicted nearly without error, as only their own copies do."""
    table = held_out.table()
    found = table.index[(table["r2"] > _TOO_GOOD) & (table["entries"] >= columns.FEWEST)]
    message = f"held-out R² above {_TOO_GOOD}: does a feature tell the outcome?"
    return [Finding("warning", str(name), message, "leak") for name in found]


def as_findings(caught: Iterable[warnings.WarningMessage]) -> list[Finding]:
    """Warnings of a fit, each once."""
    messages = dict.fromkeys(str(warning.message) for warning in caught)
    return [Finding("warning", "model", message) for message in messages]
