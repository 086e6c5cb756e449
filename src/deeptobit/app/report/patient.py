"""The patient page: one HTML file in which a browser computes predictions for one person.

This file writes what the page computes from: the numbers of the model, the fields, and how
predictions are spread over all people. ``templates/distribution.js`` has the mathematics,
``templates/visits.js`` what past visits say of a person, ``templates/patient.js`` the page. No row
of the training table is in it.
"""

import base64
import json
from typing import Any

import numpy as np
import pandas as pd

from deeptobit import likelihood
from deeptobit.app.report.card import json_value
from deeptobit.app.report.page import render_page
from deeptobit.app.report.pictures import usual_times
from deeptobit.app.study import FittedStudy, versions
from deeptobit.app.study.data import EncodedColumn, Encoder
from deeptobit.app.study.effects import FeatureRanges
from deeptobit.arrays import FloatArray
from deeptobit.estimators import MixedTobitRegressor
from deeptobit.estimators.conformal import central_interval
from deeptobit.estimators.inputs import feature_names
from deeptobit.network import Trees

COVERAGES = (0.5, 0.9)  # of the intervals that are drawn
_N_POINTS = 49  # of the curve of all people
_MOST_ROWS = 2000  # whose predictions make that curve
_CLOSE = 1e-9  # relative error that rounding explains

Numbers = dict[str, Any]


def render_patient_page(
    fitted: Any, *, name: str | None = None, fingerprint: str = "", small_counts: bool | None = None
) -> str:
    r"""One self-contained HTML page in which a browser predicts the outcomes of one person.

    Parameters
    ----------
    fitted : FittedStudy or fitted estimator of deeptobit
        Of an estimator the page knows neither ranges nor means: all fields must be filled in.
    name : str, optional
        Name of the model; that of the study by default.
    fingerprint : str
        What identifies the model file, such as its SHA-256.
    small_counts : bool, optional
        Whether to name categories with fewer than five rows; by default what ``[report]`` of the
        study says.

    Returns
    -------
    str

    Examples
    --------
    >>> from deeptobit import TobitRegressor
    >>> X = np.arange(20.0)[:, None]
    >>> model = TobitRegressor(upper=10).fit(X, np.clip(X[:, 0] - 5 + np.sin(X[:, 0]), 0, 10))
    >>> page = render_patient_page(model, name="toy")
    >>> page[page.index("<title>") : page.index("</title>")]
    '<title>toy: one patient'
    """
    ranges, people, about = None, None, {"Version": versions()["deeptobit"]}
    if isinstance(fitted, FittedStudy):
        estimator, encoder, ranges = fitted.model, fitted.encoder, fitted.ranges
        people = _people(estimator, fitted.held_out.predictive)
        about["Fitted"] = fitted.facts.get("date", "")
        title, default = fitted.name, fitted.study.report.small_counts
    else:
        estimator, encoder, title, default = fitted, _encoder(fitted), type(fitted).__name__, False
    shown = default if small_counts is None else small_counts
    model, fields = model_numbers(estimator), _fields(estimator, encoder, ranges, shown)
    if model["visits"] and model["visits"]["place"] is not None:
        fields = _time_first(fields, model["visits"])
    numbers = {
        "name": name or title,
        "model": model,
        "fields": fields,
        "mayBeBlank": encoder.missing != "error",
        "ranges": None if ranges is None else _ranges(ranges),
        "people": people,
        "coverages": list(COVERAGES),
    }
    about |= {"Model file (SHA-256)": fingerprint}
    content = {"numbers": as_json(numbers), "about": about}
    visits = ["visits.js"] * isinstance(estimator, MixedTobitRegressor)
    scripts = ["distribution.js", *visits, "patient.js"]
    return render_page("patient", name or title, content, scripts)


def as_json(numbers: Numbers) -> str:
    r"""JSON that may stand inside a script element; an infinite or unknown number is null.

    Examples
    --------
    >>> as_json({"upper": [30.0, np.inf], "name": "</script>"})
    '{"upper":[30.0,null],"name":"\\u003c/script>"}'
    """
    text = json.dumps(json_value(numbers), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


# The numbers of the model.


def model_numbers(model: Any) -> Numbers:
    """What the page needs to predict as the model does; refuses what it cannot compute.

    ``parts`` are computed in turn and each sees what the one before it made: trees, where the model
    has them, then the censored layers. Every task has its noise, σ, bounds and score grid, and the
    standardised ends of its intervals.
    """
    parts = _layers(model)
    _check_scores(model, parts)
    noise, n_tasks = model.noise_, len(model.target_names_)
    spread = noise.spread if isinstance(noise, likelihood.NoiseByTask) else None
    grid = likelihood.grid_of(noise)
    return {
        "targets": list(model.target_names_),
        "lower": model.lower_,
        "upper": model.upper_,
        "sigma": model.sigma_,
        "noise": [_family(likelihood.of_task(noise, task)) for task in range(n_tasks)],
        "spread": spread
        and {"growth": spread.growth, "centre": spread.centre, "width": spread.width},
        "step": np.zeros(n_tasks) if grid is None else grid.within(model.lower_, model.upper_),
        "origin": np.zeros(n_tasks) if grid is None else grid.origin,
        "ends": np.stack([_ends(model, coverage) for coverage in COVERAGES]),  # (C, 2, T)
        "calibrated": hasattr(model, "_calibration"),
        "parts": [{key: _packed(value) for key, value in part.items()} for part in parts],
        "visits": _visits(model) if isinstance(model, MixedTobitRegressor) else None,
    }


def _visits(model: MixedTobitRegressor) -> Numbers:
    """Random effects in standard units, and where the time of a visit is.

    Time is a feature, or follows the features, or is not needed (``place`` is null).
    """
    effects, units, n_features = model._effects, model._units, int(model.n_features_in_)
    column = vars(model).get("_visit_columns", {}).get("time")
    names = list(getattr(model, "feature_names_in_", ()))
    has_slopes = effects.own.shape[1] > 1
    place = names.index(column) if column in names else n_features if has_slopes else None
    return {
        **{name: _packed(getattr(effects, name)) for name in ("own", "shared", "visit")},
        "sigma": effects.sigma,
        **{name: getattr(units, name) for name in ("location", "scale", "time")},
        "name": column or "time",
        "place": place,
        "range": usual_times(model),
    }


def _layers(model: Any) -> list[Numbers]:
    """Trees, and the censored layers; each of these sees x, the scores below, or both."""
    if not hasattr(model, "layers_"):
        return [{"kind": "layer", "sees": "x", "coef": model.coef_, "intercept": model.intercept_}]
    found, n_tasks = [], len(model.target_names_)
    if hasattr(model, "trees_"):
        found.append(_trees(model.trees_))
    for layer in model.layers_:
        skips = layer.V.shape[1] > n_tasks
        sees = "x" if not found else "both" if skips or found[-1]["kind"] == "trees" else "below"
        part = {"kind": "layer", "sees": sees, "coef": layer.coef, "intercept": layer.intercept}
        found.append(part)
    return found


def _trees(trees: Trees) -> Numbers:
    """Trees node by node; a number is the threshold of a branch, or what a leaf adds."""
    return {
        "kind": "trees",
        **{name: getattr(trees, name) for name in ("feature", "left", "first", "output", "start")},
        "number": np.where(trees.feature < 0, trees.value, trees.threshold),
        # Missing values go to the left where the child on the right is given as negative.
        "right": np.where(trees.missing_left, -trees.right, trees.right),
    }


def _check_scores(model: Any, parts: list[Numbers]) -> None:
    """Compare the parts with the model at a few points: a page must not differ silently."""
    points = np.random.default_rng(0).normal(size=(3, model.n_features_in_))
    below: Any = None
    for part in parts:
        if part["kind"] == "trees":
            below = model.trees_(points)
            continue
        seen: Any = {"x": (points,), "below": (below,), "both": (below, points)}[part["sees"]]
        score = np.column_stack(seen) @ part["coef"].T + part["intercept"]
        below = np.clip(score, model.lower_, model.upper_)
    expected = _predict(model, points, "latent")
    if not np.allclose(score, expected, rtol=_CLOSE, atol=_CLOSE * np.abs(expected).max()):
        what = f"the patient page cannot compute a {type(model).__name__} with these parts"
        raise ValueError(f"{what}; use deeptobit predict")


def _predict(model: Any, X: FloatArray, kind: str) -> FloatArray:
    """Predictions of shape (N, T) for features in the order of the model."""
    names = getattr(model, "feature_names_in_", None)
    rows = X if names is None else pd.DataFrame(X, columns=names)
    time = {}
    if isinstance(model, MixedTobitRegressor) and "_visit_columns" not in vars(model):
        time["time"] = np.full(len(X), model._units.time[0])
    return np.asarray(model.predict(rows, kind=kind, **time).reshape(len(X), -1))


def _family(noise: Any) -> Numbers:
    """A noise family by name and parameters."""
    if isinstance(noise, likelihood.TwoPiece):
        return {"family": "two_piece", "skew": noise.skew, "base": _family(noise.base)}
    if type(noise) not in (likelihood.Gaussian, likelihood.Logistic, likelihood.StudentT):
        raise ValueError(f"the patient page cannot compute {noise!r} noise; use deeptobit predict")
    found: Numbers = {"family": noise.name}
    if isinstance(noise, likelihood.StudentT):
        found |= {"df": noise.df, "height": float(np.exp(noise.log_pdf(np.zeros(()))))}
    return found


def _ends(model: Any, coverage: float) -> FloatArray:
    """Standardised ends of the intervals of ``predict_interval``, calibrated or not, (2, T)."""
    n_tasks = len(model.target_names_)
    noise = likelihood.NoiseByTask([likelihood.of_task(model.noise_, k) for k in range(n_tasks)])
    standard = likelihood.Predictive(noise, np.zeros((1, n_tasks)), np.ones(n_tasks))
    if hasattr(model, "_calibration"):
        return np.concatenate(central_interval(standard, model._calibration.thresholds(coverage)))
    return standard.interval(coverage)[:, 0]


def _packed(values: Any) -> Any:
    """An array as base64 of its numbers, exact and half as long as digits; text as it is.

    Those with a point have 64 bits, whole ones 32.
    """
    if isinstance(values, str):
        return values
    whole = np.issubdtype(values.dtype, np.integer)
    little = np.ascontiguousarray(values, dtype="<i4" if whole else "<f8")
    text = base64.b64encode(little.tobytes()).decode()
    return {"shape": list(little.shape), "whole": bool(whole), "base64": text}


# The fields, the most important first.


def _encoder(model: Any) -> Encoder:
    """The fields of an estimator, which knows nothing of its rows."""
    names = feature_names(model)
    columns = (EncodedColumn(name, (), None, (0.0,), False, (False,)) for name in names)
    return Encoder(tuple(columns), "error")


def _fields(
    model: Any, encoder: Encoder, ranges: FeatureRanges | None, small_counts: bool
) -> list[Numbers]:
    """One field per column of the table, in the order in which they matter."""
    fields, place = [], 0
    for column in encoder.columns:
        few = (False,) * len(column.means) if small_counts else column.few
        field: Numbers = {
            "name": column.name,
            "at": place,
            "indicator": column.indicator,
            # The mean of a flag with few rows would tell how many; 0 stands in for it.
            "means": [0.0 if f else mean for mean, f in zip(column.means, few, strict=True)],
        }
        if column.reference is not None:
            public, prefix = {} if small_counts else column.rare, f"{column.name}="
            names = (prefix + level for level in column.levels)
            levels = [public.get(name, name).removeprefix(prefix) for name in names]
            field |= {"levels": levels, "reference": column.reference}
        elif ranges is not None:
            ends = {"low": ranges.low, "typical": ranges.median, "high": ranges.high}
            field |= {name: end[place] for name, end in ends.items()}
        fields.append(field)
        place += len(column.features)
    return [fields[at] for at in np.argsort(-_importance(model, encoder), kind="stable")]


def _time_first(fields: list[Numbers], visits: Numbers) -> list[Numbers]:
    """The field of the time of the forecast, then all others."""
    place, (low, high) = visits["place"], visits["range"]
    own: Numbers = {"name": visits["name"], "at": place, "indicator": False, "low": low}
    own |= {"typical": visits["time"][0], "means": [visits["time"][0]], "high": high}
    found = next((field for field in fields if field["at"] == place), own)
    title = {"title": f"{visits['name']} of the forecast"}
    return [found | title, *(field for field in fields if field is not found)]


def _importance(model: Any, encoder: Encoder) -> FloatArray:
    """How far each column moves predictions by a standard deviation, in units of their noise."""
    means = np.array(encoder.means)
    steps = np.diag(getattr(model, "feature_scale_", np.ones(len(means))))
    mean = _predict(model, np.vstack([means, means + steps]), "mean") / model.sigma_
    moved = np.abs(mean[1:] - mean[0]).mean(axis=1)
    widths = [len(column.features) for column in encoder.columns]
    return np.maximum.reduceat(moved, np.cumsum([0, *widths[:-1]]))


def _ranges(ranges: FeatureRanges) -> Numbers:
    """What an alarm needs."""
    below, above = ranges.limits
    return {
        "below": below,
        "above": above,
        "centre": _packed(np.where(ranges.scale > 0.0, ranges.centre, 0.0)),
        **{name: _packed(getattr(ranges, name)) for name in ("scale", "directions")},
        **{name: getattr(ranges, name) for name in ("variances", "rest", "farthest")},
    }


# All people, as a pale curve behind one.


def _people(model: Any, scores: likelihood.Predictive) -> list[Numbers]:
    """The mixture of held-out predictions of every target: masses at the bounds, and a curve."""
    step = -(-len(scores.latent) // _MOST_ROWS)
    latent, sigma = scores.latent[::step], scores.sigma[::step]
    mixture = likelihood.Predictive(scores.noise, latent, sigma, model.lower_, model.upper_)
    ends = mixture.quantile([0.001, 0.999])
    low = np.where(np.isfinite(model.lower_), model.lower_, ends[0].min(axis=0))
    high = np.where(np.isfinite(model.upper_), model.upper_, ends[1].max(axis=0))
    grid = low + np.linspace(0.0, 1.0, _N_POINTS)[:, None] * (high - low)
    noise = mixture.noise
    reached = [np.exp(noise.log_cdf((y - mixture.latent) / mixture.sigma)).mean(0) for y in grid]
    curves = np.round(reached, 4).T  # of the score before censoring, (T, P)
    parts = zip(low, high, curves, strict=True)
    return [{"low": start, "high": end, "cdf": curve} for start, end, curve in parts]
