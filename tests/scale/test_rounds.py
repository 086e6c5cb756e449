"""Rounds over rows beyond memory reach what the solver in memory reaches."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor
from deeptobit.datasets import make_subspace
from deeptobit.exceptions import CensoringWarning
from deeptobit.scale import ParquetRows
from tests.scale.problems import FEATURES, RANK, TARGETS, UPPER, cohort, source, write

DEFAULTS: dict[str, Any] = {"solver": "batch", "upper": UPPER, "tol": 1e-9}


def layer(**settings: Any) -> SubspaceTobitRegressor:
    return SubspaceTobitRegressor(RANK, **(DEFAULTS | settings))


def assert_same(model: Any, other: Any, rtol: float) -> None:
    scale = np.abs(other.coef_).max()
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=0, atol=rtol * scale)
    np.testing.assert_allclose(model.sigma_, other.sigma_, rtol=rtol)
    np.testing.assert_allclose(model.U_ @ model.V_, model.coef_, atol=1e-12 * scale)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("rounds") / "data", cohort())


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"alpha": 0.0},
        {"alpha": 0.3, "standardize": False},
        {"noise": "logistic"},
        {"sigma": 1.1},
        {"fit_intercept": False, "alpha": 0.01},
    ],
)
def test_rounds_reach_the_optimum_of_the_solver_in_memory(
    folder: Path, settings: dict[str, Any]
) -> None:
    frame = cohort()
    model = layer(**settings).fit(source(folder))
    memory = layer(**(settings | {"alpha": model.alpha_})).fit(frame[FEATURES], frame[TARGETS])
    assert_same(model, memory, 1e-7)
    assert model.history_["objective"] == pytest.approx(memory.history_["objective"], rel=1e-10)
    np.testing.assert_allclose(
        model.predict(frame[FEATURES]), memory.predict(frame[FEATURES]), rtol=1e-5, atol=1e-5
    )


def test_automatic_alpha_is_the_largest_that_a_fit_in_memory_tries(folder: Path) -> None:
    frame = cohort()
    model = layer().fit(source(folder))
    memory = layer().fit(frame[FEATURES], frame[TARGETS])
    assert model.alpha_ == pytest.approx(memory.history_["alphas"][0]["alpha"])
    assert model.alpha_ >= memory.alpha_


def test_weights_count_as_in_memory(folder: Path) -> None:
    frame = cohort()
    model = layer().fit(source(folder, weight="weight"))
    memory = layer(alpha=model.alpha_)
    memory.fit(frame[FEATURES], frame[TARGETS], sample_weight=frame["weight"])
    assert_same(model, memory, 1e-7)


@pytest.mark.parametrize(("n_files", "row_group", "batch_rows"), [(1, 9_999, 9_999), (7, 110, 77)])
def test_any_partition_gives_the_same_result(
    tmp_path: Path, folder: Path, n_files: int, row_group: int, batch_rows: int
) -> None:
    other = write(tmp_path / "data", cohort(), n_files, row_group)
    model, same = layer(tol=1e-6).fit(source(folder)), layer(tol=1e-6)
    assert_same(same.fit(source(other, batch_rows)), model, 1e-8)
    assert same.n_iter_ == model.n_iter_


def test_what_a_fit_leaves_behind(folder: Path) -> None:
    frame = cohort()
    model = layer().fit(source(folder))
    memory = layer(alpha=model.alpha_).fit(frame[FEATURES], frame[TARGETS])
    assert list(model.feature_names_in_) == FEATURES
    assert model.target_names_ == TARGETS
    np.testing.assert_array_equal(model.upper_, memory.upper_)
    np.testing.assert_allclose(model.feature_scale_, memory.feature_scale_, rtol=1e-9)
    assert model.history_["solver"] == "batch"
    assert len(model.history_["course"]) == model.n_iter_
    more = cohort(seed=1, n_rows=600)
    for fitted in (model, memory):
        fitted.partial_fit(more[FEATURES], more[TARGETS])
    assert_same(model, memory, 1e-5)


def test_few_rounds_are_needed(folder: Path) -> None:
    model = layer(tol=1e-6).fit(source(folder))
    assert model.n_iter_ <= 15


def test_a_network_grows_as_in_memory(tmp_path: Path) -> None:
    X, Y, _ = make_subspace(
        *(3000, 6, 4, 2), n_layers=2, skip_connection=True, sigma=0.5, latent_sd=3.0, random_state=0
    )
    frame = pd.DataFrame(X, columns=FEATURES).join(pd.DataFrame(Y, columns=TARGETS))
    rows = source(write(tmp_path / "data", frame))
    settings: dict[str, Any] = {"solver": "batch", "tol": 1e-9, "joint_tuning": False}
    model = SubspaceNetworkRegressor(RANK, 3, **settings).fit(rows)
    memory = SubspaceNetworkRegressor(RANK, 3, **settings).fit(frame[FEATURES], frame[TARGETS])
    assert model.history_["paying_depth"] == memory.history_["paying_depth"] > 1
    np.testing.assert_allclose(model.history_["nll"], memory.history_["nll"], rtol=1e-6)
    np.testing.assert_allclose(
        model.predict(frame[FEATURES]), memory.predict(frame[FEATURES]), rtol=1e-3, atol=1e-3
    )


def test_constant_and_duplicate_columns(tmp_path: Path) -> None:
    frame = cohort().assign(flat=7.0)
    frame["twice"] = frame["x0"]
    names = [*FEATURES, "flat", "twice"]
    rows = ParquetRows(write(tmp_path / "d", frame), targets=TARGETS, features=names)
    model = layer().fit(rows)
    memory = layer(alpha=model.alpha_).fit(frame[names], frame[TARGETS])
    assert_same(model, memory, 1e-6)
    np.testing.assert_array_equal(model.coef_[:, -2], 0.0)


def test_a_task_at_its_bound_throughout(tmp_path: Path) -> None:
    frame = cohort().assign(score2=0.0)
    rows = source(write(tmp_path / "data", frame))
    with pytest.warns(CensoringWarning, match="'score2': every entry is censored on the same"):
        model = layer().fit(rows)
    with pytest.warns(CensoringWarning, match="'score2'"):
        memory = layer(alpha=model.alpha_).fit(frame[FEATURES], frame[TARGETS])
    others = [0, 1, 3]
    np.testing.assert_allclose(model.coef_[others], memory.coef_[others], atol=1e-6)
    np.testing.assert_allclose(model.coef_[2], 0.0, atol=1e-12)
    assert (model.predict(frame[FEATURES])[:, 2] < 0.1).all()


def test_an_unfinished_fit_warns_with_advice(folder: Path) -> None:
    with pytest.warns(
        ConvergenceWarning, match=r"layer 1 did not converge after 1 Newton steps \(relati"
    ):
        model = layer(max_iter=1).fit(source(folder))
    assert np.isfinite(model.coef_).all()


def test_what_needs_all_rows_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="rows beyond memory supports only penalty='ridge'"):
        layer(feature_sparsity=0.5).fit(source(folder))
    for settings in ({"joint_tuning": True}, {"early_stopping": True}, {"sigma": "calibrate"}):
        with pytest.raises(ValueError, match="needs all rows in memory"):
            SubspaceNetworkRegressor(1, upper=UPPER, **settings).fit(source(folder))


def test_a_target_without_entries_is_named(tmp_path: Path) -> None:
    rows = source(write(tmp_path / "data", cohort(n_rows=100).assign(score1=np.nan)))
    with pytest.raises(ValueError, match="target 'score1' has no entry"):
        layer().fit(rows)


def test_progress_shows_rows_per_second(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layer(verbose=1).fit(source(folder))
    assert "rows/s" in capsys.readouterr().err
    layer(verbose=1, solver="online").fit(source(folder))
    assert "3,000 of 3,000 rows" in capsys.readouterr().err


def test_one_dimensional_frames_are_not_needed(folder: Path) -> None:
    model = layer(upper=None).fit(ParquetRows(folder, targets=["score1"], features=FEATURES))
    assert model.predict(pd.DataFrame(cohort()[FEATURES])).shape == (3000, 1)
