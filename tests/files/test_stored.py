"""Models stored in a format load ever after, and predict what they predicted."""

import json
from pathlib import Path

import numpy as np
import pytest

from deeptobit import load
from deeptobit.files.container import VERSION
from tests.files.store import FOLDER, expectations, rows

STORED = sorted(FOLDER.glob("*.model"))


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_stored_model_predicts_what_it_predicted(path: Path) -> None:
    expected = json.loads(path.with_suffix(".json").read_text())
    found = expectations(load(path))
    assert found.keys() == expected.keys()
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("stream_*.model")), ids=lambda path: path.stem)
def test_a_stored_stream_goes_on(path: Path) -> None:
    model = load(path)
    X, Y = rows(700)
    before = model.score(X, Y)
    model.partial_fit(X, Y)
    assert model.n_iter_ == 790
    assert model.score(X, Y) > before


def test_every_version_is_stored_with_every_estimator() -> None:
    names = {path.stem for path in STORED}
    for version in range(1, VERSION + 1):
        assert {f"{kind}_{version}" for kind in ("tobit", "stream", "network", "formula")} <= names
    assert all(path.stat().st_size < 20_000 for path in STORED)
