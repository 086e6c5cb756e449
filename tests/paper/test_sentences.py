"""Sentences of the paper that a few lines can check; docs/paper.md names these tests."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from deeptobit import CensoredTargets, datasets
from deeptobit.likelihood import Gaussian, evaluate
from deeptobit.published import (
    PublishedSubspaceNetwork,
    PublishedSubspaceTobit,
    Row,
    refine,
    sketch,
    slopes,
)
from paper.arrays import FloatArray
from paper.baselines import MLPBaseline, networks

SIGMA = 1.5
STEPS: dict[str, Any] = {"alpha": 0.05, "sigma": SIGMA, "step_size_V": 2e-3, "step_size_U": 1e-3}


def factors(n_tasks: int = 5, n_inputs: int = 7, rank: int = 3) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(1)
    return rng.standard_normal((n_tasks, rank)), rng.standard_normal((rank, n_inputs))


def one_row() -> Row:
    """Some outcomes observed, some at 0."""
    y = np.array([2.0, 0.0, 0.0, 4.0, 1.0])
    sigma = np.full(5, SIGMA)
    return Row(np.random.default_rng(2).standard_normal(7), y, (y == 0.0).astype(float), sigma)


# Introduction and section 4.


def test_scales_of_clinical_scores() -> None:
    """MMSE, ADAS-Cog and CDR are bounded; the tests of section 4.2 are proposed for ADNI."""
    cohort = datasets.make_clinical_cohort(10, random_state=0)
    scales = {name: (cohort.lower[name], cohort.upper[name]) for name in cohort.lower}
    assert scales["MMSE_bl"] == (0.0, 30.0)
    assert scales["ADAS11_bl"] == (0.0, 70.0)
    assert scales["CDRSB_bl"] == (0.0, 18.0)
    scores = datasets.packaged_table("adni_scores")
    assert len(scores) == 30
    assert set(scores["visit"]) == {"bl", "m06"}
    for test in ("TOTAL11", "LIMMTOTAL", "AVTOT1", "RAVLT_immediate", "NPISCORE"):
        assert (scores["column"] == test).any()
    assert not scores["column"].str.contains("CDR|MMSE").any()


def test_the_mlp_has_the_layers_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 4.1: three layers of T units; f-MLP has bottlenecks of R."""
    monkeypatch.setattr(networks, "_MAX_EPOCHS", 2)
    X, Y, _ = datasets.make_subspace(60, 7, 5, 3, sigma=SIGMA, random_state=0)
    model = MLPBaseline(2, retrain=False).fit(X, CensoredTargets.from_bounds(Y, 0.0))
    shapes = [(U.shape, V.shape) for U, V in model.layers_]
    assert shapes == [((5, 2), (2, 7)), ((5, 2), (2, 5)), ((5, 2), (2, 5))]


# Section 2.


def test_outcomes_decouple_given_v() -> None:
    """Section 2: “y can be entry-wise decoupled”; 2.1: (P:U) is decoupled by task."""
    (U, V), row = factors(), one_row()
    other = U.copy()
    other[0] += 1.0
    moved = slopes(other @ (V @ row.x), row) != slopes(U @ (V @ row.x), row)
    assert moved.tolist() == [True, False, False, False, False]
    same = refine(U, V, row, 0.05, 1e-3) == refine(other, V, row, 0.05, 1e-3)
    assert same.all(axis=1).tolist() == [False, True, True, True, True]


def test_sketching_couples_all_dimensions_of_the_subspace() -> None:
    """Section 2.1: in (P:V) one row of V moves the gradient of every other one."""
    (U, V), row = factors(), one_row()
    other = V.copy()
    other[0] += 1.0
    steps = [sketch(U, start, row, 0.0, 1e-3) - start for start in (V, other)]
    assert (np.abs(steps[0] - steps[1]).max(axis=1) > 1e-6).all()


def cost(W: FloatArray, X: FloatArray, Y: FloatArray) -> tuple[float, FloatArray]:
    """The sum over rows of −log Pr, and its slope by W (T, D)."""
    targets = CensoredTargets.from_bounds(Y, 0.0)
    found = evaluate(Gaussian(), targets.low, targets.high, X @ W.T, np.full(len(W), SIGMA))
    return float(found.nll.sum()), found.latent.T @ X


def test_block_coordinate_descent_solves_equation_2() -> None:
    """Section 2.1: V and U in turn, each at its minimum over all rows, as if both at once."""
    X, Y, _ = datasets.make_subspace(150, 6, 5, 2, sigma=SIGMA, random_state=0)
    penalty = 3.0  # λ beside a sum over rows

    def objective(U: FloatArray, V: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Its value, and its slopes by U and V."""
        targets = CensoredTargets.from_bounds(Y, 0.0)
        found = evaluate(Gaussian(), targets.low, targets.high, X @ V.T @ U.T, np.full(5, SIGMA))
        slope = found.latent.T @ X
        value = float(found.nll.sum()) + 0.5 * penalty * float((U**2).sum() + (V**2).sum())
        return value, slope @ V.T + penalty * U, U.T @ slope + penalty * V

    def minimum(of: Any, start: FloatArray) -> Any:
        return minimize(of, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-8})

    def of_v(flat: FloatArray) -> tuple[float, FloatArray]:
        value, _, by_v = objective(U, flat.reshape(2, 6))
        return value, by_v.ravel()

    def of_u(flat: FloatArray) -> tuple[float, FloatArray]:
        value, by_u, _ = objective(flat.reshape(5, 2), V)
        return value, by_u.ravel()

    def of_both(flat: FloatArray) -> tuple[float, FloatArray]:
        value, *slopes = objective(flat[:10].reshape(5, 2), flat[10:].reshape(2, 6))
        return value, np.concatenate([slope.ravel() for slope in slopes])

    U, V = factors(5, 6, 2)
    together = minimum(of_both, np.concatenate([U.ravel(), V.ravel()]))
    course = []
    for _ in range(60):
        V = minimum(of_v, V.ravel()).x.reshape(2, 6)
        U = minimum(of_u, U.ravel()).x.reshape(5, 2)
        course.append(objective(U, V)[0])
    assert np.diff(course).max() < 1e-6
    assert course[-1] == pytest.approx(together.fun, rel=1e-5)


def test_argmin_of_one_row_after_the_other_keeps_the_last_row_alone() -> None:
    """Algorithm 1 as boxed: UV = s x'/‖x‖², with x and the scores s of the last row."""
    X, Y, _ = datasets.make_subspace(60, 7, 5, 3, sigma=SIGMA, random_state=0)
    for k in (1, 2, 60):
        model = PublishedSubspaceTobit(3, **STEPS, form="argmin", random_state=0).fit(X[:k], Y[:k])
        x = X[k - 1]
        np.testing.assert_allclose(model.coef_, np.outer(model.coef_ @ x, x) / (x @ x), atol=1e-12)


# Section 2.2 and the appendix.


def test_the_quadratic_surrogate_lies_above_the_cost_and_touches_it() -> None:
    """Appendix: with α = ‖Vx‖²/σ² + λ, at least the second derivative of g by U_t."""
    (U, V), row, alpha = factors(), one_row(), 0.05
    h = V @ row.x
    bend = float(h @ h) / SIGMA**2 + alpha

    def g(at: FloatArray) -> FloatArray:
        """By task."""
        low = np.where(row.side == 1.0, -np.inf, row.y)[None]
        nll = evaluate(Gaussian(), low, row.y[None], (at @ h)[None], row.sigma).nll[0]
        return np.asarray(nll + 0.5 * alpha * (at**2).sum(axis=1))

    slope = slopes(U @ h, row)[:, None] * h + alpha * U
    for seed in range(50):
        move = 3.0 * np.random.default_rng(seed).standard_normal(U.shape)
        above = g(U) + (slope * move).sum(axis=1) + 0.5 * bend * (move**2).sum(axis=1)
        assert (above >= g(U + move) - 1e-9).all()
    tiny = 1e-5 * move
    linear = g(U) + (slope * tiny).sum(axis=1)
    np.testing.assert_allclose(g(U + tiny), linear, atol=1e-7)


# Section 3.


def test_every_layer_learns_the_outcomes_again_and_none_is_added_to_those_below() -> None:
    """Section 3: “can also be viewed as a gradient boosting method”, which would sum layers."""
    X, Y, _ = datasets.make_subspace(80, 7, 5, 3, sigma=SIGMA, random_state=0)
    starts = [factors(), factors(n_inputs=12), factors(n_inputs=12)]
    network = PublishedSubspaceNetwork(3, 3, **STEPS, init=starts).fit(X, Y)
    stages = list(network.staged_predict(X, kind="clip"))
    assert len(network.layers_) == len(stages) == 3  # K layers, the last of which is the answer
    seen = X
    for start, layer, stage in zip(starts, network.layers_, stages, strict=True):
        alone = PublishedSubspaceTobit(3, **STEPS, init=start).fit(seen, Y)  # Y, and no residuals
        np.testing.assert_allclose(layer.coef, alone.coef_, rtol=1e-10)
        np.testing.assert_allclose(stage, np.maximum(seen @ alone.coef_.T, 0.0), atol=1e-10)
        seen = np.hstack([stage, X])
    np.testing.assert_array_equal(network.predict(X, kind="clip"), stages[-1])
