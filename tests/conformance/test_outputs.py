"""What predictions must be: numbers, within the bounds, parts of one distribution."""

import gc
import pickle
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from copy import deepcopy
from itertools import pairwise
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from deeptobit.arrays import FloatArray
from tests.conformance.estimators import EVERY_ESTIMATOR, EVERY_STREAM, every
from tests.conformance.problems import (
    Answers,
    Problem,
    ask,
    assert_same,
    fitted,
    make_problem,
    seeded,
)

_WITHIN_BOUNDS = ("predict", "predict_interval", "predict_quantile", "sample_y", "staged_predict")


@EVERY_ESTIMATOR
def test_no_nan_leaves(estimator: Any) -> None:
    """Missing outcomes and features far out give finite answers; a missing feature is an error."""
    problem = make_problem(estimator, missing=0.2)
    model = fitted(estimator, problem)
    for times in (0.0, 1.0, 1e3, 1e6):
        for name, answer in ask(model, times * problem.X).items():
            assert np.isfinite(answer).all(), f"{name} is not finite for {times:g} times X"
    assert np.isfinite(model.score(problem.X, problem.Y)), "score is not finite"
    for hole in (np.nan, np.inf):
        X = problem.X.copy()
        X[0, 0] = hole
        for what, call in (
            ("fit", lambda X=X: seeded(estimator).fit(X, problem.Y)),
            ("predict", lambda X=X: model.predict(X)),
        ):
            assert _refuses(call), f"{what} takes {hole} among the features"


@EVERY_ESTIMATOR
def test_bounds_are_respected(estimator: Any) -> None:
    """Predictions, quantiles, intervals and draws lie within the bounds, however far out x is.

    Scores before censoring (``prediction="latent"``) are free.
    """
    problem = make_problem(estimator)
    model = fitted(estimator, problem)
    latent = estimator.get_params(deep=False).get("prediction") == "latent"
    for times in (1.0, 1e3):
        for name, answer in ask(model, times * problem.X).items():
            if name not in _WITHIN_BOUNDS or (latent and name.endswith("predict")):
                continue
            low, high = _bounds_like(name, problem)
            assert (answer >= low).all(), f"{name} falls below the lower bound"
            assert (answer <= high).all(), f"{name} exceeds the upper bound"


@EVERY_ESTIMATOR
def test_distribution_is_coherent(estimator: Any) -> None:
    r"""Quantiles rise with q, intervals are quantiles, and probabilities at the bounds fit to them.

    .. math:: q \le P(y = \mathrm{lower}) \iff F^{-1}(q) = \mathrm{lower}

    Intervals that were calibrated are no longer quantiles; these are not.
    """
    problem = make_problem(estimator)
    model = fitted(estimator, problem)
    q = np.linspace(0.05, 0.95, 19)
    quantiles = model.predict_quantile(problem.X, q)
    assert (np.diff(quantiles, axis=0) >= 0.0).all(), "a quantile falls as q rises"
    expected = {"predict_interval": quantiles[[0, -1]]}
    found = {"predict_interval": np.asarray(model.predict_interval(problem.X, 0.9))}
    assert_same(found, expected, "from the quantiles at its ends")
    at_lower, at_upper = model.predict_bound_proba(problem.X)
    assert (at_lower >= 0.0).all(), "a probability is negative"
    assert (at_upper >= 0.0).all(), "a probability is negative"
    assert (at_lower + at_upper <= 1.0 + 1e-12).all(), "probabilities exceed 1"
    levels = q.reshape(-1, *[1] * at_lower.ndim)
    _assert_at_bound(quantiles == problem.lower, levels - at_lower)
    _assert_at_bound(quantiles == problem.upper, 1.0 - levels - at_upper)


@every("tobit", "subspace", "subspace online", "cv")  # bounds per task would need more tasks
def test_one_outcome_is_one_dimensional(estimator: Any) -> None:
    """The answers to y of shape (N,) are those to Y of shape (N, 1), without the axis of tasks."""
    problem = make_problem(estimator, n_tasks=1)
    many, one = fitted(estimator, problem), seeded(estimator).fit(problem.X, problem.Y[:, 0])
    found, expected = ask(one, problem.X), ask(many, problem.X)
    for name in expected.keys() - {"transform"}:
        axis = -2 if name == "sample_y" else -1
        expected[name] = np.squeeze(expected[name], axis=axis)
        shape = expected[name].shape
        assert found[name].shape == shape, f"{name} has shape {found[name].shape}, not {shape}"
    assert_same(found, expected, "for y of shape (N,)")


def _bounds_like(name: str, problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Bounds that broadcast with an answer: tasks are its last axis, but for draws."""
    if name == "sample_y":
        return problem.lower[:, None], problem.upper[:, None]
    return problem.lower, problem.upper


def _assert_at_bound(at_bound: Any, beyond: FloatArray) -> None:
    """A quantile is at the bound where its level is within the mass there, and only there."""
    clear = np.abs(beyond) > 1e-9
    wrong = clear & (at_bound != (beyond < 0.0))
    assert not wrong.any(), "quantiles and probabilities at the bounds disagree"


def _refuses(call: Any) -> bool:
    try:
        call()
    except ValueError:
        return True
    return False


# Copies of a model, models that are fitted again, and what a stored model carries along.

_MANY = 4  # consecutive numbers that are no coincidence


@EVERY_ESTIMATOR
def test_copies_agree(estimator: Any) -> None:
    """A pickled or copied model answers as the model does; a clone is as good as new."""
    problem = make_problem(estimator)
    model = fitted(estimator, problem)
    expected = ask(model, problem.X)
    pickled = pickle.loads(pickle.dumps(model))
    assert_same(ask(pickled, problem.X), expected, "after pickling", rtol=0.0, atol=0.0)
    assert_same(ask(deepcopy(model), problem.X), expected, "in a copy", rtol=0.0, atol=0.0)
    left = [name for name in vars(clone(model)) if name.endswith("_")]
    assert not left, f"a clone keeps {', '.join(left)}"
    again = clone(model).fit(problem.X, problem.Y)
    assert_same(ask(again, problem.X), expected, "in a clone that is fitted to the same data")


@EVERY_ESTIMATOR
def test_refit_forgets(estimator: Any) -> None:
    """A model that is fitted again knows nothing of the first data, which had another shape."""
    other = make_problem(estimator, 60, 5, n_tasks=2, seed=1)
    problem = make_problem(estimator)
    model = fitted(estimator, other)
    model.fit(problem.X, problem.Y)
    expected = fitted(estimator, problem)
    assert_same(ask(model, problem.X), ask(expected, problem.X), "after a fit to other data")
    left = sorted(vars(model).keys() ^ vars(expected).keys())
    assert not left, f"attributes depend on earlier fits: {', '.join(left)}"


@EVERY_ESTIMATOR
def test_training_rows_are_not_stored(estimator: Any) -> None:
    """A pickled model holds no row of X, and no stretch of a column of X or Y.

    A model that is passed on must not carry its training data along. Found are values as they were
    given, in either order of memory; values in other units are not.
    """
    problem = make_problem(estimator)
    stored = pickle.dumps(fitted(estimator, problem))
    for name, values in (("X", problem.X), ("Y", problem.Y.reshape(len(problem.X), -1))):
        for part, stretches in (("row", values), ("column", values.T)):
            found = sum(_holds(stored, stretch) for stretch in stretches)
            assert not found, f"the pickled model holds {found} {part}(s) of {name}"


def _holds(stored: bytes, stretch: FloatArray) -> bool:
    """Whether consecutive numbers that are not all the same lie side by side in memory."""
    if len(stretch) < _MANY or len(np.unique(stretch)) < _MANY:
        return False
    return np.ascontiguousarray(stretch).tobytes() in stored or (
        len(stretch) > 2 * _MANY and np.ascontiguousarray(stretch[:_MANY]).tobytes() in stored
    )


# Where and how parallel a model is fitted must not show in it.


@every("network")  # another process takes seconds to start
def test_same_seed_across_processes(estimator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seed gives the same model in another process with another number of threads.

    Here on one thread, there on two: of OpenMP, of BLAS and of Numba. The other process has other
    hashes of strings, too.
    """
    problem = make_problem(estimator, missing=0.1)
    with threadpool_limits(1):
        here = _learn_and_ask(estimator, problem)
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        monkeypatch.setenv(f"{library}_NUM_THREADS", "2")
    with ProcessPoolExecutor(1, get_context("spawn")) as other:
        there = other.submit(_learn_and_ask, estimator, problem).result()
    assert_same(there, here, "in another process with two threads")


@every("subspace online", "network")
def test_n_jobs_changes_nothing(estimator: Any) -> None:
    """``n_jobs`` is a matter of time alone: 1, 2, or -1, which stands for all cores."""
    problem = make_problem(estimator)
    alone = fitted(clone(estimator).set_params(n_jobs=1), problem)
    for n_jobs in (2, -1):
        together = fitted(clone(estimator).set_params(n_jobs=n_jobs), problem)
        assert_same(ask(together, problem.X), ask(alone, problem.X), f"with n_jobs={n_jobs}")


def _learn_and_ask(estimator: Any, problem: Problem) -> Answers:
    return ask(fitted(estimator, problem), problem.X)


# What learning from a stream promises: pieces are the whole, in constant memory.

_ROWS = 640
_CHUNK, _WARM, _CHUNKS = 200, 4, 12


@EVERY_STREAM
def test_partial_fit_in_pieces(estimator: Any) -> None:
    """Calls of ``partial_fit`` on consecutive rows equal one call on all of them.

    Pieces are of any length, in multiples of ``batch_size`` where the estimator has one.
    """
    problem, edges = _stream(estimator)
    whole = seeded(estimator).partial_fit(problem.X, problem.Y)
    pieces = seeded(estimator)
    for first, last in pairwise(edges):
        pieces.partial_fit(problem.X[first:last], problem.Y[first:last])
    assert_same(ask(pieces, problem.X), ask(whole, problem.X), "when it learns in pieces")


@EVERY_STREAM
def test_pickled_stream_goes_on(estimator: Any) -> None:
    """A model that is pickled between two calls of ``partial_fit`` goes on as if it were not."""
    problem, edges = _stream(estimator)
    straight, interrupted = seeded(estimator), seeded(estimator)
    for first, last in pairwise(edges):
        X, Y = problem.X[first:last], problem.Y[first:last]
        straight.partial_fit(X, Y)
        interrupted = pickle.loads(pickle.dumps(interrupted)).partial_fit(X, Y)
    found, expected = ask(interrupted, problem.X), ask(straight, problem.X)
    assert_same(found, expected, "when it is pickled in the middle of a stream")


@EVERY_STREAM
def test_memory_is_bounded(estimator: Any) -> None:
    """2400 rows through ``partial_fit`` leave less than a quarter of their size in memory.

    What is allocated once, such as a kernel that is compiled late, is in one of two stretches.
    """
    problem = make_problem(estimator, _CHUNK)
    model = seeded(estimator)
    was_tracing = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        used = [_memory_after(model, problem, n) for n in (_WARM, _CHUNKS, _CHUNKS)]
        growth = min(after - before for before, after in pairwise(used))
    finally:
        if not was_tracing:
            tracemalloc.stop()
    passed = _CHUNKS * (problem.X.nbytes + problem.Y.nbytes)
    assert growth < 0.25 * passed, (
        f"memory grew by {growth} bytes while {passed} bytes passed through partial_fit"
    )


def _stream(estimator: Any) -> tuple[Problem, list[int]]:
    """Some hundred rows, and where they are cut."""
    batch = int(estimator.get_params().get("batch_size", 1))
    n_batches = max(20, _ROWS // batch)
    cuts = [0, 1, 3, 10, n_batches // 2, n_batches]
    return make_problem(estimator, n_batches * batch), [batch * cut for cut in cuts]


def _memory_after(model: Any, problem: Problem, n_chunks: int) -> int:
    for _ in range(n_chunks):
        model.partial_fit(problem.X.copy(), problem.Y.copy())
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
