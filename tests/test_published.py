"""The published algorithms against loops that were written from the paper alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_ndtr
from sklearn.base import clone

from deeptobit import CensoredTargets, load
from deeptobit.exceptions import DivergenceError
from deeptobit.published import PublishedSubspaceNetwork, PublishedSubspaceTobit, Row, slopes

RANK, ALPHA, SIGMA = 3, 0.05, 1.5
OPEN = 1e6  # a bound that nothing reaches
STEPS: dict[str, Any] = {"step_size_V": 2e-3, "step_size_U": 1e-3}


def data(n: int = 60, d: int = 7, t: int = 5, upper: float | None = None, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    W = rng.normal(size=(t, min(RANK, d))) @ rng.normal(size=(min(RANK, d), d))
    Y = np.clip(X @ W.T + SIGMA * rng.normal(size=(n, t)), 0.0, np.inf if upper is None else upper)
    return X, Y


def slope(score: Any, y: Any, sigma: Any, upper: float) -> Any:
    """d(−log Pr)/d score by the paper's two cases, and their mirror image at an upper bound."""
    below, above = y <= 0.0, y >= upper
    z, z_up = -score / sigma, (score - upper) / sigma
    inner = -(y - score) / sigma**2
    inner = np.where(below, ratio(z) / sigma, inner)
    return np.where(above, -ratio(z_up) / sigma, inner)


def ratio(z: Any) -> Any:
    """φ/(1 − Q), from logarithms."""
    return np.exp(-0.5 * z**2 - 0.5 * np.log(2.0 * np.pi) - log_ndtr(z))


def gradient_layer(
    U: Any, V: Any, X: Any, Y: Any, sigma: Any, eta: float, mu: float, up: float
) -> Any:
    """Algorithms 1 and 2, with λ in every step."""
    U, V = U.copy(), V.copy()
    for x, y in zip(X, Y, strict=True):
        total = np.zeros_like(V)
        for_task = slope(U @ V @ x, y, sigma, up)
        for t in range(len(U)):
            total += for_task[t] * U[t][:, None] * x[None, :]
        V = V - eta * (total + ALPHA * V)
        for_task = slope(U @ V @ x, y, sigma, up)
        U = np.array([U[t] - mu * (for_task[t] * (V @ x) + ALPHA * U[t]) for t in range(len(U))])
    return U, V


def network(
    starts: Any, X: Any, Y: Any, sigma: Any, steps: Any, up: float, skip: bool, cal: bool
) -> Any:
    """Algorithm 3; each start is a pair, or None for the layer below."""
    seen, found = X, list[Any]()
    for number, start in enumerate(starts):
        if start is None:
            U, V = found[-1]
            V = V if number > 1 else np.hstack([np.zeros((RANK, Y.shape[1])), V])
        else:
            U, V = start
        eta, mu = steps[number]
        U, V = gradient_layer(U, V, seen, Y, sigma, eta, mu, up)
        found.append((U, V))
        score = seen @ (U @ V).T
        if cal:
            sigma = np.sqrt(((Y - score) ** 2).mean(axis=0))
        f = np.minimum(np.maximum(score, 0.0), up)
        seen = np.hstack([f, X]) if skip else f
    return found, sigma


def close(U: Any, V: Any, wanted: Any, tolerance: float = 1e-10) -> None:
    W = wanted[0] @ wanted[1]
    assert np.abs(U @ V - W).max() <= tolerance * np.abs(W).max()


@pytest.mark.parametrize("upper", [None, 4.0])
@pytest.mark.parametrize("k", [1, 2, 17, 60])
def test_gradient_form_is_algorithms_1_and_2(k: int, upper: float | None) -> None:
    X, Y = data(upper=upper)
    model = PublishedSubspaceTobit(
        RANK, alpha=ALPHA, **STEPS, sigma=SIGMA, random_state=4, upper=upper
    ).fit(X[:k], Y[:k])
    rng = np.random.default_rng(4)
    start = rng.standard_normal((5, RANK)), rng.standard_normal((RANK, 7))
    up = OPEN if upper is None else upper
    wanted = gradient_layer(*start, X[:k], Y[:k], SIGMA, 2e-3, 1e-3, up)
    close(model.U_, model.V_, wanted)
    np.testing.assert_array_equal(model.coef_, model.U_ @ model.V_)
    assert not model.intercept_.any()
    assert model.n_iter_ == k


def test_gradient_form_at_the_sizes_of_the_paper() -> None:
    X, Y = data(2000, 200, 100)
    sigma = np.linspace(2.0, 4.0, 100)
    rng = np.random.default_rng(1)
    start = rng.standard_normal((100, RANK)), rng.standard_normal((RANK, 200))
    settings: dict[str, Any] = {"step_size_V": 1e-3, "step_size_U": 5e-4, "init": start}
    model = PublishedSubspaceTobit(RANK, alpha=ALPHA, sigma=sigma, **settings).fit(X, Y)
    close(model.U_, model.V_, gradient_layer(*start, X, Y, sigma, 1e-3, 5e-4, OPEN))


@pytest.mark.parametrize("skip", [True, False], ids=["skip", "naive"])
@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("upper", [None, 4.0])
@pytest.mark.parametrize("k", [1, 2, 17, 60])
def test_networks_are_algorithm_3(
    k: int, upper: float | None, calibrated: bool, skip: bool
) -> None:
    X, Y = (part[:k] for part in data(upper=upper))
    steps = [(2e-3, 1e-3), (1e-3, 1e-3), (5e-4, 2e-3)]
    model = PublishedSubspaceNetwork(
        RANK,
        3,
        alpha=ALPHA,
        step_size_V=[eta for eta, _ in steps],
        step_size_U=[mu for _, mu in steps],
        sigma=SIGMA,
        random_state=1,
        upper=upper,
        skip_connection=skip,
        calibrate=calibrated,
    ).fit(X, Y)
    rng, widths = np.random.default_rng(1), [7, *[5 + 7 * skip] * 2]
    starts = [(rng.standard_normal((5, RANK)), rng.standard_normal((RANK, d))) for d in widths]
    up = OPEN if upper is None else upper
    found, sigma = network(starts, X, Y, SIGMA, steps, up, skip, calibrated)
    for layer, wanted in zip(model.layers_, found, strict=True):
        close(layer.U, layer.V, wanted)
    np.testing.assert_allclose(model.sigma_, sigma, rtol=1e-10)


@pytest.mark.parametrize("given", [False, True])
def test_layers_may_start_where_the_one_below_ended(given: bool) -> None:
    X, Y = data()
    rng = np.random.default_rng(2)
    start = rng.standard_normal((5, RANK)), rng.standard_normal((RANK, 7))
    steps = [(2e-3, 1e-3), (2e-6, 1e-6), (2e-8, 1e-8)]
    eta, mu = zip(*steps, strict=True)
    model = PublishedSubspaceNetwork(
        RANK,
        3,
        alpha=ALPHA,
        step_size_V=eta,
        step_size_U=mu,
        sigma=SIGMA,
        init=start if given else "below",
        random_state=2,
    ).fit(X, Y)
    found, _ = network([start, None, None], X, Y, SIGMA, steps, OPEN, True, False)
    for layer, wanted in zip(model.layers_, found, strict=True):
        close(layer.U, layer.V, wanted)


def test_starts_may_be_given_for_every_layer() -> None:
    X, Y = data()
    rng = np.random.default_rng(3)
    starts = [(rng.normal(size=(5, RANK)), rng.normal(size=(RANK, d))) for d in (7, 12)]
    model = PublishedSubspaceNetwork(RANK, 2, alpha=ALPHA, **STEPS, sigma=SIGMA, init=starts).fit(
        X, Y
    )
    found, _ = network(starts, X, Y, SIGMA, [(2e-3, 1e-3)] * 2, OPEN, True, False)
    for layer, wanted in zip(model.layers_, found, strict=True):
        close(layer.U, layer.V, wanted)


def cost(scores: Any, y: Any, up: float) -> float:
    parts = np.where(y <= 0.0, -log_ndtr(-scores / SIGMA), 0.5 * ((y - scores) / SIGMA) ** 2)
    return float(np.where(y >= up, -log_ndtr((scores - up) / SIGMA), parts).sum())


def argmin_layer(U: Any, X: Any, Y: Any, up: float) -> Any:
    """Algorithm 1 as boxed: each problem by its own optimality conditions, to the last digits."""
    for x, y in zip(X, Y, strict=True):
        # ∇_V = U'g x' + λV = 0, so that V = −U'g x'/λ with the slopes g at V: a fixed point.
        h = np.zeros(U.shape[1])
        for _ in range(50):
            e = 1e-6
            g = slope(U @ h, y, SIGMA, up)
            bend = (slope(U @ h + e, y, SIGMA, up) - slope(U @ h - e, y, SIGMA, up)) / (2 * e)
            H = (U.T * bend) @ U + ALPHA / (x @ x) * np.eye(len(h))
            h = h - np.linalg.solve(H, U.T @ g + ALPHA / (x @ x) * h)
        V = np.outer(h, x) / (x @ x)
        low, high = np.full(len(U), -1e6), np.full(len(U), 1e6)
        for _ in range(100):  # bisection: the derivative of a convex function
            middle = 0.5 * (low + high)
            rises = slope(middle, y, SIGMA, up) + ALPHA * middle / (h @ h) > 0.0
            low, high = np.where(rises, low, middle), np.where(rises, middle, high)
        U = np.outer(low, h) / (h @ h)
    return U, V


@pytest.mark.parametrize("upper", [None, 4.0])
@pytest.mark.parametrize("k", [1, 2, 17])
def test_argmin_form_is_algorithm_1_as_boxed(k: int, upper: float | None) -> None:
    X, Y = data(upper=upper)
    rng = np.random.default_rng(5)
    start = 0.5 * rng.normal(size=(5, RANK)), rng.normal(size=(RANK, 7))
    model = PublishedSubspaceTobit(
        RANK, alpha=ALPHA, **STEPS, sigma=SIGMA, form="argmin", init=start, upper=upper
    ).fit(X[:k], Y[:k])
    up = OPEN if upper is None else upper
    close(model.U_, model.V_, argmin_layer(start[0], X[:k], Y[:k], up))
    assert np.linalg.matrix_rank(model.V_) == 1


def test_the_argmin_minimises_the_cost_of_a_row() -> None:
    X, Y = data()
    U = np.random.default_rng(6).normal(size=(5, RANK))
    model = PublishedSubspaceTobit(
        RANK, alpha=ALPHA, **STEPS, sigma=SIGMA, form="argmin", init=(U, np.zeros((RANK, 7)))
    ).fit(X[:1], Y[:1])

    def of_v(flat: Any) -> float:
        V = flat.reshape(RANK, 7)
        return cost(U @ V @ X[0], Y[0], OPEN) + 0.5 * ALPHA * float((V**2).sum())

    def of_u(flat: Any) -> float:
        at = flat.reshape(5, RANK)
        return cost(at @ model.V_ @ X[0], Y[0], OPEN) + 0.5 * ALPHA * float((at**2).sum())

    best = minimize(of_v, np.zeros(RANK * 7), tol=1e-14)
    np.testing.assert_allclose(model.V_.ravel(), best.x, atol=1e-5)
    best = minimize(of_u, np.zeros(5 * RANK), tol=1e-14)
    np.testing.assert_allclose(model.U_.ravel(), best.x, atol=1e-5)


@pytest.mark.parametrize("form", ["gradient", "argmin"])
def test_pieces_passes_clones_and_files_give_the_same_bits(form: Any, tmp_path: Path) -> None:
    X, Y = data()
    settings: dict[str, Any] = {"alpha": ALPHA, **STEPS, "sigma": SIGMA, "form": form}
    one = PublishedSubspaceTobit(RANK, **settings, random_state=0)
    whole = clone(one).fit(X, Y)
    pieces = clone(one).partial_fit(X[:20], Y[:20])
    pieces.save(tmp_path / "half")
    for model in (pieces, load(tmp_path / "half")):
        model.partial_fit(X[20:], Y[20:])
        np.testing.assert_array_equal(model.coef_, whole.coef_)
        np.testing.assert_array_equal(model.history_["change"][0], whole.history_["change"][0])
    twice = clone(one).set_params(n_passes=2).fit(X, Y)
    np.testing.assert_array_equal(twice.coef_, whole.partial_fit(X, Y).coef_)
    deep = PublishedSubspaceNetwork(RANK, 2, **settings, random_state=0, calibrate=True).fit(X, Y)
    deep.save(tmp_path / "deep")
    for again in (load(tmp_path / "deep"), clone(deep).fit(X, Y)):
        np.testing.assert_array_equal(again.predict(X), deep.predict(X))
        assert [tuple(layer.V.ravel()) for layer in again.layers_] == [
            tuple(layer.V.ravel()) for layer in deep.layers_
        ]


def test_missing_outcomes_have_likelihood_one() -> None:
    X, Y = data()
    gaps = Y.copy()
    gaps[::3, 0] = np.nan
    for form in ("gradient", "argmin"):
        settings: dict[str, Any] = {"alpha": ALPHA, **STEPS, "sigma": SIGMA, "form": form}
        model = PublishedSubspaceTobit(RANK, **settings, random_state=0).fit(X, gaps)
        assert np.isfinite(model.coef_).all()
    start = np.zeros((5, RANK)), np.ones((RANK, 7))
    model = PublishedSubspaceTobit(RANK, alpha=0.0, **STEPS, sigma=SIGMA, init=start)
    model.fit(X[:1], gaps[:1])
    assert not model.U_[0].any()
    assert model.U_[1:].any()


def test_change_of_the_subspace_row_by_row() -> None:
    X, Y = data()
    settings: dict[str, Any] = {"alpha": ALPHA, **STEPS, "sigma": SIGMA, "random_state": 0}
    (change,) = PublishedSubspaceTobit(RANK, **settings).fit(X, Y).history_["change"]
    before, after = (PublishedSubspaceTobit(RANK, **settings).fit(X[:k], Y[:k]) for k in (9, 10))
    assert change[9] == pytest.approx(np.linalg.norm(after.U_ - before.U_))


def test_the_printed_tail_keeps_teaching() -> None:
    """At z = −8 the slope is 8.12/σ, where a quotient of φ and Φ with a guard has 5e-10."""
    start = np.array([[8.0]]), np.array([[1.0]])
    model = PublishedSubspaceTobit(
        1, alpha=0.0, step_size_V=1e-9, step_size_U=1.0, sigma=1.0, init=start
    ).fit(np.ones((1, 1)), np.zeros((1, 1)))
    assert 8.0 - model.U_[0, 0] == pytest.approx(8.1214, abs=1e-3)


def test_the_cost_of_a_row_is_convex_and_smooth_in_its_scores() -> None:
    """Its curvature is between 0 and 1/σ²: bounded, but its slope is not."""
    scores = np.linspace(-40.0, 40.0, 801)
    for side in (-1.0, 0.0, 1.0):
        row = Row(np.ones(1), np.full(801, 1.0), np.full(801, side), np.full(801, SIGMA))
        bend = np.diff(slopes(scores, row)) / np.diff(scores)
        assert bend.min() >= -1e-12
        assert bend.max() <= 1.0 / SIGMA**2 + 1e-12
        assert np.abs(slopes(scores, row)).max() > 15.0


def test_divergence_names_layer_row_and_step() -> None:
    X, Y = data(400)
    settings: dict[str, Any] = {"alpha": 0.0, "sigma": SIGMA, "random_state": 0}
    model = PublishedSubspaceTobit(RANK, step_size_V=0.7, step_size_U=0.3, **settings)
    with pytest.raises(DivergenceError, match=r"layer 1 .* row \d+, .*V=0\.7 .*U=0\.3"):
        model.fit(X, Y)
    assert not hasattr(model, "sigma_")
    steps = [1e-4, 0.9]
    deep = PublishedSubspaceNetwork(RANK, 2, step_size_V=steps, step_size_U=steps, **settings)
    with pytest.raises(DivergenceError, match=r"layer 2 .*step_size_V=0\.9"):
        deep.fit(X, Y)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"form": "newton"}, "form must be"),
        ({"alpha": -1.0}, "alpha must be at least 0"),
        ({"alpha": 0.0, "form": "argmin"}, "positive in the argmin form"),
        ({"step_size_V": 0.0}, "step_size_V must be positive"),
        ({"step_size_U": [1e-3]}, "one per layer"),
        ({"step_size_U": np.array(1e-3)}, "must be a finite number"),
        ({"sigma": 0.0}, "sigma must be positive"),
        ({"sigma": "mle"}, "sigma must be"),
        ({"init": "lucky"}, "init must be"),
        ({"init": [(np.ones((5, 2)), np.ones((2, 7)))] * 2}, "shapes"),
        ({"init": [(np.ones((5, 3)), np.ones((3, 7)))]}, "each of 2 layers"),
        ({"init": None}, "init must be 'random', 'below'"),
        ({"init": ["below", "random"]}, "one .U, V. for each of 2 layers"),
        ({"init": "below", "skip_connection": False}, "without skip connection"),
        ({"calibrate": "yes"}, "True or False"),
        ({"n_passes": 0}, "n_passes"),
    ],
)
def test_wrong_settings(wrong: dict[str, Any], words: str) -> None:
    X, Y = data()
    given: dict[str, Any] = {"alpha": ALPHA, **STEPS, "sigma": SIGMA} | wrong
    with pytest.raises(ValueError, match=words):
        PublishedSubspaceNetwork(RANK, 2, **given).fit(X, Y)


def test_intervals_are_refused() -> None:
    X, Y = data()
    targets = CensoredTargets.from_intervals(Y, Y + 1.0)
    with pytest.raises(ValueError, match="'y0' has entries censored to intervals"):
        PublishedSubspaceTobit(RANK, alpha=ALPHA, **STEPS, sigma=SIGMA).fit(X, targets)


def test_calibration_needs_residuals() -> None:
    X = np.ones((3, 1))
    start = np.ones((1, 1)), np.ones((1, 1))
    model = PublishedSubspaceNetwork(
        1, 1, alpha=0.0, **STEPS, sigma=1.0, init=start, calibrate=True
    )
    with pytest.raises(ValueError, match="no residuals"):
        model.fit(X, X)
