"""The depth as rows that are set aside choose it."""

from typing import Any

import numpy as np
import pytest

from tests.estimators.test_network import data, grown


def test_rows_set_aside_choose_the_depth() -> None:
    X, Y = data(n_layers=1)
    model = grown(n_layers=4, early_stopping=True, random_state=0).fit(X, Y)
    scores = model.history_["validation"]
    assert model.n_layers_ == len(model.layers_) <= 4
    assert len(scores) in (model.n_layers_, model.n_layers_ + 1)
    chosen = scores[: model.n_layers_]
    assert chosen == sorted(chosen, reverse=True)
    plain = grown(n_layers=model.n_layers_).fit(X, Y)  # trained on all rows in the end
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))


def test_the_split_depends_on_the_seed_alone() -> None:
    X, Y = data(200)
    first, second, other = (
        grown(early_stopping=True, random_state=seed).fit(X, Y).history_["validation"]
        for seed in (0, 0, 1)
    )
    assert first == second
    assert first != other


def test_a_rare_target_need_not_be_among_the_rows_set_aside() -> None:
    X, Y = data(200)
    Y[8:, 0] = np.nan
    Y[:8, 0] += 1.0
    for seed in range(3):
        model = grown(early_stopping=True, random_state=seed).fit(X, Y)
        assert np.isfinite(model.history_["validation"]).all()


def test_rows_of_no_weight_are_not_set_aside() -> None:
    X, Y = data(200)
    weight = np.repeat([1.0, 0.0], 100)
    options: dict[str, Any] = {"early_stopping": True, "random_state": 0}
    weighted = grown(**options).fit(X, Y, sample_weight=weight)
    absent = grown(**options).fit(X[:100], Y[:100])
    assert weighted.history_["validation"] == pytest.approx(absent.history_["validation"])


def test_the_validation_score_is_the_log_score_of_the_rows_set_aside() -> None:
    X, Y = data(200)
    options: dict[str, Any] = {
        "validation_fraction": 0.25,
        "random_state": np.random.RandomState(3),
    }
    model = grown(n_layers=1, early_stopping=True, **options).fit(X, Y)
    state = np.random.RandomState(3)
    state.randint(np.iinfo(np.int32).max)  # the seed of the online solver
    order = state.permutation(200)
    other = grown(n_layers=1).fit(X[np.sort(order[50:])], Y[np.sort(order[50:])])
    expected = -other.score_log(X[order[:50]], Y[order[:50]])
    assert model.history_["validation"] == pytest.approx([expected])


def test_a_depth_that_validates_is_taken() -> None:
    X, Y = data()
    model = grown(early_stopping=True, validation_fraction=0.3, random_state=0).fit(X, Y)
    assert model.n_layers_ == 2
    assert model.history_["validation"][1] < model.history_["validation"][0]
