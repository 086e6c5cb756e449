"""Strategies: recipes of problems, bounds as users write them, and texts of study files."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from deeptobit.arrays import FloatArray
from tests.properties.problems import COLUMNS, TASKS, WEIGHTS, Recipe

# Most problems have one oddity or two: where everything is odd, the first refusal hides the rest.
_COMMON_COLUMNS = st.sampled_from(("normal", "normal", "normal", "binary"))
_COMMON_TASKS = st.sampled_from(("scores", "bounded", "bounded", "open"))
_SIZES = (1e-300, 1e-160, 1e-100, 1e-12, 1e-3, 1e3, 1e12, 1e100, 1e145, 1e160, 1e300)
_NOISES = st.sampled_from(("gaussian", "gaussian", "logistic", "student_t"))
_PENALTIES = st.sampled_from((0.0, 1e-9, 1e-3, 0.1, 1.0, 100.0, 1e9))
_BOOLS = st.booleans()
_SEEDS = st.integers(0, 2**32 - 1)
_RANKS = st.integers(1, 8)
_ROWS = st.sampled_from((20, 30, 25, 15, 12, 1, 2, 3, 4, 5, 6, 7, 8, 10))


def _rarely(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    """The usual value in three of four cases."""
    return st.sampled_from((usual,) * 3 * len(others) + others)


def _odd(
    usual: st.SearchStrategy[str], kinds: tuple[str, ...], most: int
) -> st.SearchStrategy[tuple[str, ...]]:
    """A tuple of kinds: usual ones, at times with others among them."""
    kind = st.one_of(usual, usual, st.sampled_from(kinds))
    plain, mixed = (st.lists(one, min_size=1, max_size=most) for one in (usual, kind))
    return st.one_of(plain, mixed, mixed).map(tuple)


def _settings(**choices: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some parameters of an estimator; the others keep their defaults."""
    common = {
        "noise": _NOISES,
        "fit_intercept": _rarely(True, False),
        "standardize": _rarely(True, False),
    }
    return st.fixed_dictionaries({}, optional=common | choices)


_ALPHA = st.one_of(st.just("auto"), _PENALTIES)
_SIGMA = st.one_of(st.just("mle"), st.sampled_from((1e-3, 1.0, 1e3)))
_BATCH: dict[str, st.SearchStrategy[Any]] = {
    "rank": _RANKS,
    "alpha": _ALPHA,
    "sigma": _SIGMA,
    "feature_sparsity": _rarely(0.0, 0.3, 1.0),
}
_ONLINE: dict[str, st.SearchStrategy[Any]] = {
    "rank": _RANKS,
    "alpha": _ALPHA,
    "sigma": _SIGMA,
    "n_passes": st.integers(1, 3),
    "batch_size": st.integers(1, 8),
}
_DEEP = {
    "n_layers": st.integers(1, 3),
    "skip_connection": _rarely(True, False),
    "joint_tuning": st.sampled_from(("auto", True, False)),
    "prune_layers": _rarely(True, False),
    "early_stopping": _rarely(False, True),
    "random_state": st.just(0),
}
SETTINGS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "tobit": _settings(alpha=_PENALTIES, sigma=_SIGMA),
    "subspace": st.one_of(
        _settings(**_BATCH),
        _settings(**_ONLINE).map(lambda chosen: chosen | {"solver": "online"}),
    ),
    "network": st.one_of(
        _settings(**_BATCH, **_DEEP),
        _settings(**_BATCH, **_DEEP),
        _settings(**_ONLINE, **_DEEP).map(lambda chosen: chosen | {"solver": "online"}),
    ),
    "auto": _settings(
        noise=st.sampled_from(("auto", "gaussian")),
        members=st.sampled_from(("auto", ("stack",))),
        cv=st.integers(2, 4),
        scoring=st.sampled_from(("r2", "log")),
        random_state=st.just(0),
    ),
}


@st.composite
def recipes(draw: st.DrawFn, models: tuple[str, ...]) -> Recipe:
    """Problems of every kind for some of the models."""
    model = draw(st.sampled_from(models))
    streams = model in ("subspace", "network")
    return Recipe(
        seed=draw(_SEEDS),
        n_rows=draw(_ROWS),
        columns=draw(_odd(_COMMON_COLUMNS, COLUMNS, 6)),
        tasks=draw(_odd(_COMMON_TASKS, tuple(TASKS), 4)),
        feature_size=draw(_rarely(1.0, *_SIZES)),
        target_size=draw(_rarely(1.0, *_SIZES)),
        weights=draw(_rarely("none", *WEIGHTS)),
        by_entry=draw(_rarely(False, True)),
        intervals=draw(_rarely(False, True)),
        single=draw(_rarely(False, True)),
        flat=draw(_BOOLS),
        container=draw(_rarely("array", "fortran", "sparse", "frame")),
        n_pieces=draw(_rarely(0, 1, 2, 3)) if streams else 0,
        model=model,
        settings=draw(SETTINGS[model]),
    )


@st.composite
def ordinary_recipes(draw: st.DrawFn, /, model: str, **settings: Any) -> Recipe:
    """Problems with a unique optimum that is found to many digits."""
    return Recipe(
        seed=draw(_SEEDS),
        n_rows=draw(st.integers(12, 30)),
        columns=draw(st.lists(_COMMON_COLUMNS, min_size=1, max_size=4).map(tuple)),
        tasks=draw(st.lists(_COMMON_TASKS, min_size=1, max_size=4).map(tuple)),
        weights=draw(_rarely("none", "uneven")),
        by_entry=draw(_rarely(False, True)),
        model=model,
        settings=settings,
    )


_ENDS = st.one_of(st.floats(-1e6, 1e6), st.sampled_from((0.0, 1e-300, -1e140, 1e140)))


@st.composite
def bounded_values(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Y of shape (N, T), NaN where missing, and bounds (T,) that some entries lie beyond."""
    n_rows, n_tasks = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    lower, upper = np.full(n_tasks, -np.inf), np.full(n_tasks, np.inf)
    for task in range(n_tasks):
        low, high = draw(st.tuples(_ENDS, _ENDS).filter(lambda ends: ends[0] < ends[1]))
        sides = draw(st.sampled_from(("both", "lower", "upper", "none")))
        lower[task] = low if sides in ("both", "lower") else -np.inf
        upper[task] = high if sides in ("both", "upper") else np.inf
    cell = st.one_of(st.just(np.nan), st.just(-1e150), st.just(1e150), _ENDS)
    cells = draw(st.lists(cell, min_size=n_rows * n_tasks, max_size=n_rows * n_tasks))
    return np.reshape(cells, (n_rows, n_tasks)), lower, upper


_NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp")), min_size=1, max_size=8
).filter(str.strip)
_NUMBERS = st.one_of(st.integers(-(10**9), 10**9), st.floats(-1e9, 1e9))
_KEYS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "data": {"id": _NAMES, "group": _NAMES, "missing": st.lists(st.one_of(_NAMES, _NUMBERS))},
    "features": {
        "include": st.lists(_NAMES),
        "exclude": st.lists(_NAMES),
        "categorical": st.lists(_NAMES),
        "missing": st.sampled_from(("impute", "error")),
    },
    "target": {
        "column": _NAMES,
        "below": _NAMES,
        "lower": st.one_of(_NAMES, st.integers(-100, 0)),
        "upper": st.one_of(_NAMES, st.floats(0.5, 1e9)),
        "outside": st.sampled_from(("error", "clip")),
    },
    "model": {"cv": st.integers(2, 9), "seed": st.integers(0, 10**9)},
    "auto": {"kind": st.just("auto"), "members": st.just(["stack"])},
    "network": {
        "max_layers": st.integers(1, 9),
        "ranks": st.lists(st.integers(1, 9)),
        "alphas": st.lists(st.floats(1e-9, 1e9)),
    },
    "evaluation": {
        "method": st.sampled_from(("splits", "folds")),
        "train_shares": st.lists(st.floats(0.01, 0.99), min_size=1),
        "coverage": st.floats(0.01, 0.99),
    },
}


@st.composite
def study_contents(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    """What a sound study file says: keys and values by section, the sections of targets by name."""
    sections = {
        name: draw(st.fixed_dictionaries({}, optional=_KEYS[name]))
        for name in ("data", "features", "model", "evaluation")
    }
    sections["data"]["file"] = draw(_NAMES)
    kind = draw(st.sampled_from(("auto", "network")))
    sections["model"] |= draw(st.fixed_dictionaries({}, optional=_KEYS[kind]))
    if kind != "auto":
        sections["model"]["kind"] = kind
    target = st.fixed_dictionaries({}, optional=_KEYS["target"])
    return sections | {"targets": draw(st.dictionaries(_NAMES, target, min_size=1, max_size=3))}
