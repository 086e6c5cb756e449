"""One pass over a source is what one pass in memory is."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor
from deeptobit.datasets import make_subspace
from tests.scale.problems import FEATURES, RANK, TARGETS, UPPER, cohort, source, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("online") / "data", cohort())


@pytest.mark.parametrize("batch_rows", [100, 5000])
def test_a_pass_over_files_equals_a_pass_in_memory(folder: Path, batch_rows: int) -> None:
    frame = cohort()
    model = SubspaceTobitRegressor(RANK, solver="online", upper=UPPER, n_passes=2)
    model.fit(source(folder, batch_rows))
    memory = SubspaceTobitRegressor(RANK, solver="online", upper=UPPER, n_passes=2)
    memory.fit(frame[FEATURES], frame[TARGETS])
    np.testing.assert_array_equal(model.coef_, memory.coef_)
    np.testing.assert_array_equal(model.sigma_, memory.sigma_)
    assert model.n_iter_ == memory.n_iter_ == 6000
    assert str(model.history_["course"]) == str(memory.history_["course"])


def test_a_pass_is_gone_on_with(folder: Path) -> None:
    frame, more = cohort(), cohort(seed=1, n_rows=600)
    model = SubspaceTobitRegressor(RANK, solver="online", upper=UPPER).fit(source(folder))
    memory = SubspaceTobitRegressor(RANK, solver="online", upper=UPPER)
    memory.fit(frame[FEATURES], frame[TARGETS])
    for fitted in (model, memory):
        fitted.partial_fit(more[FEATURES], more[TARGETS])
    np.testing.assert_allclose(model.coef_, memory.coef_, rtol=1e-9)


def test_a_network_learns_layer_after_layer(tmp_path: Path) -> None:
    X, Y, _ = make_subspace(
        *(12_000, 6, 4, 2), n_layers=2, skip_connection=True, sigma=0.5, latent_sd=3.0,
        random_state=0,
    )  # fmt: skip
    frame = pd.DataFrame(X, columns=FEATURES).join(pd.DataFrame(Y, columns=TARGETS))
    train, test = frame[:10_000], frame[10_000:]
    rows = source(write(tmp_path / "data", train))
    model = SubspaceNetworkRegressor(RANK, 3, solver="online").fit(rows)
    memory = SubspaceNetworkRegressor(RANK, 3, solver="online")
    memory.fit(train[FEATURES], train[TARGETS])
    one = SubspaceTobitRegressor(RANK, solver="online").fit(rows)
    scores = [m.score_log(test[FEATURES], test[TARGETS]) for m in (one, memory, model)]
    assert scores[1] - scores[0] > 0.01
    assert scores[2] - scores[0] > 0.8 * (scores[1] - scores[0])
    assert len(model.layers_) == 3
    assert len(model.history_["layers"]) == 3


def test_rows_of_weight_zero_do_not_count(folder: Path) -> None:
    frame = cohort()
    present = frame[frame["weight"] > 0]
    model = SubspaceTobitRegressor(RANK, solver="online", upper=UPPER)
    model.fit(source(folder, weight="weight"))
    memory = SubspaceTobitRegressor(RANK, solver="online", upper=UPPER)
    memory.fit(present[FEATURES], present[TARGETS], sample_weight=present["weight"])
    np.testing.assert_allclose(model.coef_, memory.coef_, rtol=1e-9)
    twice = frame.loc[frame.index.repeat(frame["weight"].astype(int)), FEATURES]
    np.testing.assert_allclose(model.feature_scale_, twice.std(ddof=0), rtol=1e-9)
