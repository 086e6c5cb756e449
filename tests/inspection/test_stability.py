"""Components do not depend on rotation; what is stable, and a sentence where nothing is."""

import numpy as np
import pytest

from deeptobit import SubspaceTobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.inspection import (
    Stability,
    agreement,
    align,
    canonical_subspaces,
    summarise_draws,
)

NAMES = tuple("abcdef"), tuple("stuv")


def effects() -> FloatArray:
    """Two separated components, (4, 6)."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(n, 2)))[0] for n in (4, 6))
    return np.asarray(left @ np.diag([3.0, 1.0]) @ right.T)


def summary(noise: float, n_components: int = 2, chance: float = 0.2) -> Stability:
    rng, truth = np.random.default_rng(1), effects()

    def drawn() -> FloatArray:
        return np.asarray(truth + noise * rng.normal(size=truth.shape))

    draws = [align(truth, drawn(), n_components) for _ in range(200)]
    halves = [(drawn(), drawn()) for _ in range(10)]
    return summarise_draws(
        truth,
        canonical_subspaces(truth, *NAMES)[:n_components],
        draws,
        halves,
        {50.0: np.full(n_components, 0.5), 25.0: np.full(n_components, 1 / 3)},
        np.full(n_components, chance),
        n_people=100.0,
        confidence=0.9,
        probability=0.95,
    )


def test_components_do_not_depend_on_rotation_or_sign() -> None:
    U, S, V = np.linalg.svd(effects(), full_matrices=False)
    rotation = np.linalg.qr(np.random.default_rng(2).normal(size=(2, 2)))[0]
    rotated = (U[:, :2] * S[:2] @ rotation) @ (rotation.T @ V[:2])
    found, same = align(effects(), rotated, 2), align(effects(), effects(), 2)
    np.testing.assert_allclose(found.loadings, same.loadings, atol=1e-12)
    np.testing.assert_allclose(found.cosines, 1.0)
    for r, subspace in enumerate(canonical_subspaces(effects(), *NAMES)[:2]):
        unit = np.linalg.norm(subspace.target_loadings)
        np.testing.assert_allclose(found.loadings[r], unit * subspace.feature_loadings, atol=1e-12)


def test_bands_hold_their_share_and_stable_features_are_large() -> None:
    found = summary(0.1)
    assert found.components["separated"].all()
    table = found.loadings
    assert ((table["low"] <= table["loading"]) & (table["loading"] <= table["high"])).mean() > 0.9
    sizes = table["loading"].abs().groupby(table["stable"]).min()
    assert sizes[True] > 0.1
    assert str(found).startswith("Of 6 features")
    assert found.stable().shape == (6, 2)
    np.testing.assert_allclose(found.components["agreement_x1"], 2 / 3)
    np.testing.assert_allclose(found.components["agreement_x4"], 8 / 9)


def test_nothing_is_stable_in_noise_and_one_sentence_says_so() -> None:
    found = summary(5.0)
    assert not found.stable().to_numpy().any()
    assert str(found).startswith("Nothing is stable: no loading")
    assert str(found).count(".") == 2  # the end, and the point of a number
    assert np.array(found.components["agreement_x4"] > found.components["agreement_x1"]).all()


def test_more_people_are_promised_nothing_where_halves_agree_as_by_chance() -> None:
    found = summary(5.0, chance=0.6)
    assert str(found).startswith("Nothing is stable: no loading")
    assert str(found).endswith("agree no better than those of shuffled outcomes.")


def test_the_stable_set_is_the_largest_with_the_mean_probability_asked_for() -> None:
    loadings = summary(0.15).loadings
    assert 0.0 < loadings["stable"].mean() < 1.0
    for _, one in loadings.groupby("component"):
        ordered = one.sort_values("sign_probability", ascending=False)
        mean = np.cumsum(ordered["sign_probability"]) / np.arange(1, len(one) + 1)
        assert ordered["stable"].tolist() == (mean >= 0.95).tolist()


def test_agreement_is_that_of_scores() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 6))
    X[:, 1] = X[:, 0]  # a copy: which of the two has the loading makes no difference
    first, second = np.zeros((4, 6)), np.zeros((4, 6))
    first[0, 0] = second[0, 1] = 1.0
    assert agreement(first, second, X, 1) == pytest.approx([1.0])
    second[0] = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert agreement(first, second, X, 1) < 0.3


def test_a_layer_knows_how_stable_it_is() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 5))
    Y = np.maximum(X[:, [0]] - X[:, [1]] + rng.normal(size=(300, 3)), 0.0)
    found = SubspaceTobitRegressor(1).fit(X, Y).subspace_stability(n_boot=40, n_splits=4)
    assert found.stable().loc[["x0", "x1"], 1].all()
    row = found.components.loc[1]
    assert row["agreement"] > 0.9 > row["chance"]
    shuffled = SubspaceTobitRegressor(1).fit(X, rng.permutation(Y))
    again = shuffled.subspace_stability(n_boot=40, n_splits=4, random_state=1)
    assert again.components["n_stable"].sum() <= 1


def test_a_draw_has_the_closest_component_with_its_sign() -> None:
    truth, rng = effects(), np.random.default_rng(5)
    draw = truth + 0.5 * rng.normal(size=truth.shape)
    found, directions = align(truth, draw, 2), np.linalg.svd(draw)[0]
    for r, subspace in enumerate(canonical_subspaces(truth, *NAMES)[:2]):
        u = subspace.target_loadings / np.linalg.norm(subspace.target_loadings)
        assert found.directions[:, r] @ u == pytest.approx(found.cosines[r])
        assert found.cosines[r] == pytest.approx(np.abs(directions.T @ u).max())
        np.testing.assert_allclose(found.loadings[r], found.directions[:, r] @ draw, atol=1e-12)


def test_signs_of_stable_features_hold_as_often_as_they_are_asked_to() -> None:
    rng, held, kept = np.random.default_rng(6), [], []
    for _ in range(40):
        left, right = rng.normal(size=(5, 1)), rng.normal(size=(1, 60)) * rng.uniform(size=60)
        truth = 2.0 * left @ right

        def errors() -> FloatArray:
            return rng.normal(size=(5, 60))

        found, fresh = truth + errors(), truth + errors()
        halves = []
        for _ in range(10):
            change = errors()
            halves.append((found + change, found - change))
        summarised = summarise_draws(
            found,
            canonical_subspaces(found, tuple(map(str, range(60))), (*NAMES[1], "w"))[:1],
            [align(found, found + errors(), 1) for _ in range(20)],
            halves,
            {50.0: np.ones(1)},
            np.zeros(1),
            n_people=100.0,
            confidence=0.9,
            probability=0.95,
        )
        stable = summarised.stable()[1].to_numpy()
        shown = align(found, found, 1)
        same = (shown.directions.T @ fresh) * shown.loadings > 0.0
        held.append(same[0, stable])
        kept.append(stable)
    assert 0.93 <= np.concatenate(held).mean() <= 0.98
    assert np.mean(kept) > 0.25
