"""The published algorithms against loops that were written from the paper alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpmath import mp
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
    """φ/(1 − Q), from logarithms; far in the tail from the series of 1 − Q."""
    near, w = np.maximum(z, -50.0), np.minimum(z, -50.0) ** -2.0
    far = -z / (1.0 - w + 3.0 * w**2 - 15.0 * w**3)
    logarithm = -0.5 * near**2 - 0.5 * np.log(2.0 * np.pi) - log_ndtr(near)
    return np.where(z < -50.0, far, np.exp(logarithm))


def gradient_layer(
    U: Any, V: Any, X: Any, Y: Any, sigma: Any, eta: float, mu: float, up: float
) -> Any:
    """Algorithms 1 and 2, with λ in every step."""
    U, V = U.copy(), V.copy()
    for x, y in zip(X, Y, strict=True):
        total = np.einsum("t,tr,d->rd", slope(U @ V @ x, y, sigma, up), U, x)
        V = V - eta * (total + ALPHA * V)
        h = V @ x
        U = U - mu * (np.einsum("t,r->tr", slope(U @ h, y, sigma, up), h) + ALPHA * U)
    return U, V


def exact_slope(score: Any, y: Any, sigma: Any, up: Any) -> Any:
    """The slope of one task with the digits of mpmath."""
    if 0.0 < y < up:
        return (score - y) / sigma**2
    side, z = (1, -score / sigma) if y <= 0.0 else (-1, (score - up) / sigma)
    return side * mp.npdf(z) / mp.ncdf(z) / sigma


def exact_solve(H: Any, g: Any) -> Any:
    return np.array(list(mp.lu_solve(mp.matrix(H.tolist()), mp.matrix(g.tolist()))))


def argmin_h(U: Any, y: Any, sigma: Any, ridge: float, up: float) -> Any:
    """∇ = U'g + ridge·h = 0 with the slopes g at Uh; with 60 digits where some σ is tiny."""
    g: Any = slope
    solve: Any = np.linalg.solve
    e: Any = 1e-6
    if sigma.min() < 1e-5:
        U, y, sigma = (np.vectorize(mp.mpf, otypes=[object])(part) for part in (U, y, sigma))
        g, solve, e = np.frompyfunc(exact_slope, 4, 1), exact_solve, mp.mpf(10) ** -20
    h = 0 * U[0]
    with mp.workdps(60):
        for _ in range(200):
            score = U @ h
            bend = (g(score + e, y, sigma, up) - g(score - e, y, sigma, up)) / (2 * e)
            H = (U.T * bend) @ U + ridge * np.eye(len(h))
            move = solve(H, U.T @ g(score, y, sigma, up) + ridge * h)
            h = h - move
            if np.abs(move).max() <= 1e-12 * np.abs(h).max():
                break
    return h.astype(float)


def argmin_layer(U: Any, X: Any, Y: Any, sigma: Any, up: float) -> Any:
    """Algorithm 1 as boxed: each problem by its own optimality conditions, to the last digits.

    Where λ divided by a square overflows, the square is as good as 0, and so is the argmin.
    """
    for x, y in zip(X, Y, strict=True):
        # ∇_V = U'g x' + λV = 0, so that V = −U'g x'/λ, a column times x'; and so for U_t.
        V = np.zeros((U.shape[1], len(x)))
        if x @ x > 1e-300:
            V = np.outer(argmin_h(U, y, sigma, ALPHA / (x @ x), up), x) / (x @ x)
        h = V @ x
        if h @ h < 1e-300:
            U = np.zeros_like(U)
            continue
        # s lies between 0 and the score of the first slope, as slopes rise with s: bisection.
        end = np.clip(-slope(np.zeros(len(U)), y, sigma, up) * (h @ h) / ALPHA, -1e4, 1e4)
        low, high = np.minimum(end, 0.0), np.maximum(end, 0.0)
        for _ in range(90):
            middle = 0.5 * (low + high)
            rises = slope(middle, y, sigma, up) + ALPHA * middle / (h @ h) > 0.0
            low, high = np.where(rises, low, middle), np.where(rises, middle, high)
        U = np.outer(low, h) / (h @ h)
    return U, V


def network(
    starts: Any, X: Any, Y: Any, sigma: Any, steps: Any, up: float, skip: bool, cal: bool
) -> Any:
    """Algorithm 3; each start is a pair, or None for the layer below; no steps: argmin."""
    seen, found, sigma = X, list[Any](), np.full(Y.shape[1], sigma)
    for number, start in enumerate(starts):
        if start is None:
            U, V = found[-1]
            V = V if number > 1 else np.hstack([np.zeros((RANK, Y.shape[1])), V])
        else:
            U, V = start
        if steps is None:
            U, V = argmin_layer(U, seen, Y, sigma, up)
        else:
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


@pytest.mark.parametrize("skip", [True, False], ids=["skip", "naive"])
@pytest.mark.parametrize(("form", "n"), [("gradient", 2000), ("argmin", 80)])
def test_networks_at_the_sizes_of_the_paper(form: Any, n: int, skip: bool) -> None:
    X, Y = data(n, 200, 100, 30.0)
    sigma, rng = np.linspace(2.0, 4.0, 100), np.random.default_rng(1)
    widths = [200, *[100 + 200 * skip] * 2]
    starts = [(rng.normal(size=(100, RANK)), rng.normal(size=(RANK, d))) for d in widths]
    steps = [(1e-3, 5e-4), (2e-6, 1e-6), (1e-6, 2e-6)]
    settings: dict[str, Any] = {"form": form, "init": starts, "upper": 30.0}
    settings |= {"skip_connection": skip, "calibrate": True}
    eta, mu = zip(*steps, strict=True)
    model = PublishedSubspaceNetwork(
        RANK, 3, alpha=ALPHA, step_size_V=eta, step_size_U=mu, sigma=sigma, **settings
    ).fit(X, Y)
    given = steps if form == "gradient" else None
    found, last = network(starts, X, Y, sigma, given, 30.0, skip, True)
    for layer, wanted in zip(model.layers_, found, strict=True):
        close(layer.U, layer.V, wanted)
    np.testing.assert_allclose(model.sigma_, last, rtol=1e-10)


@pytest.mark.parametrize("form", ["gradient", "argmin"])
@pytest.mark.parametrize("skip", [True, False], ids=["skip", "naive"])
@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("upper", [None, 4.0])
@pytest.mark.parametrize(("k", "seed"), [(1, 5), (1, 149), (2, 0), (17, 0), (60, 0)])
def test_networks_are_algorithm_3(
    k: int, seed: int, upper: float | None, calibrated: bool, skip: bool, form: Any
) -> None:
    """One row, calibrated and argmin: σ of 1e-8 in layer 3, where squares would leave no digits."""
    X, Y = (part[:k] for part in data(upper=upper, seed=seed))
    steps = [(2e-3, 1e-3), (1e-3, 1e-3), (5e-4, 2e-3)]
    model = PublishedSubspaceNetwork(
        RANK,
        3,
        alpha=ALPHA,
        step_size_V=[eta for eta, _ in steps],
        step_size_U=[mu for _, mu in steps],
        sigma=SIGMA,
        form=form,
        random_state=seed,
        upper=upper,
        skip_connection=skip,
        calibrate=calibrated,
    ).fit(X, Y)
    rng, widths = np.random.default_rng(seed), [7, *[5 + 7 * skip] * 2]
    starts = [(rng.standard_normal((5, RANK)), rng.standard_normal((RANK, d))) for d in widths]
    up, given = upper or OPEN, steps if form == "gradient" else None
    found, sigma = network(starts, X, Y, SIGMA, given, up, skip, calibrated)
    for layer, wanted in zip(model.layers_, found, strict=True):
        close(layer.U, layer.V, wanted)
    left = sigma > 1e-12  # not rounding alone
    np.testing.assert_allclose(model.sigma_[left], sigma[left], rtol=1e-10)


def test_sigma_is_calibrated_where_residuals_are_left() -> None:
    """Without a positive output of layer 1, naive layer 2 says 0, and is right where y = 0."""
    X, Y = (part[:1] for part in data(seed=33))
    settings: dict[str, Any] = {"alpha": ALPHA, "step_size_V": 2e-3, "step_size_U": 1e-3}
    settings |= {"sigma": SIGMA, "random_state": 33, "skip_connection": False, "calibrate": True}
    model = PublishedSubspaceNetwork(RANK, 2, **settings).fit(X, Y)
    first = np.abs(Y[0] - model.coef_ @ X[0])
    np.testing.assert_allclose(model.layers_[0].sigma, first)
    assert set(np.flatnonzero(Y[0] == 0.0)) == {1, 3, 4}
    np.testing.assert_allclose(model.sigma_, np.where(Y[0] == 0.0, first, Y[0]))
    with pytest.raises(ValueError, match=r"layer 2 leaves no residuals of target 'y1' after row 0"):
        PublishedSubspaceNetwork(RANK, 3, **settings).fit(X, Y)


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


@pytest.mark.parametrize("upper", [None, 4.0])
@pytest.mark.parametrize("k", [1, 2, 17, 60])
def test_argmin_form_is_algorithm_1_as_boxed(k: int, upper: float | None) -> None:
    X, Y = data(upper=upper)
    rng = np.random.default_rng(5)
    start = 0.5 * rng.normal(size=(5, RANK)), rng.normal(size=(RANK, 7))
    model = PublishedSubspaceTobit(
        RANK, alpha=ALPHA, **STEPS, sigma=SIGMA, form="argmin", init=start, upper=upper
    ).fit(X[:k], Y[:k])
    up = OPEN if upper is None else upper
    close(model.U_, model.V_, argmin_layer(start[0], X[:k], Y[:k], np.full(5, SIGMA), up))
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


def test_the_argmin_form_has_no_steps_to_name() -> None:
    X, Y = data()
    settings: dict[str, Any] = {"alpha": ALPHA, **STEPS, "form": "argmin", "random_state": 0}
    with pytest.raises(DivergenceError, match="layer 1 diverged in row 0, pass 1, in the") as error:
        PublishedSubspaceTobit(RANK, sigma=1e-200, **settings).fit(X, Y)
    assert "step" not in str(error.value)
    for small in (1e-160, 1e-79):  # λ/‖x‖² or λ/‖h‖² overflows
        scale = np.where(np.arange(60) == 0, small, 1.0)[:, None]
        model = PublishedSubspaceTobit(RANK, sigma=SIGMA, **settings).fit(scale * X, Y)
        assert not model.coef_.any()


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
    X, start = np.ones((3, 1)), (np.ones((1, 1)), np.ones((1, 1)))
    settings: dict[str, Any] = {"alpha": 0.0, **STEPS, "sigma": 1.5, "calibrate": True}
    model = PublishedSubspaceNetwork(1, 1, init=start, **settings).fit(X, X)
    assert model.sigma_.tolist() == [1.5]
    with pytest.raises(ValueError, match=r"layer 1 leaves no residuals .* after row 2"):
        PublishedSubspaceNetwork(1, 2, init=start, **settings).fit(X, X)


def test_one_layer_has_none_below_to_start_at() -> None:
    X, Y = data()
    model = PublishedSubspaceTobit(RANK, alpha=ALPHA, **STEPS, sigma=SIGMA, init="below")
    with pytest.raises(ValueError, match=r"init must be 'random' or arrays .U, V.; got 'below'"):
        model.fit(X, Y)
