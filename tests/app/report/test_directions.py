import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from deeptobit import CensoredTargets, SubspaceNetworkCV, SubspaceNetworkRegressor, datasets
from deeptobit.app.report.brain import draw_cortex
from deeptobit.app.report.effects import (
    Directions,
    in_words,
    shared_directions,
    similarity_words,
    task_cosines,
)
from deeptobit.app.report.pictures import drawing
from deeptobit.app.report.words import percent


def _fitted(n_layers: int) -> tuple[SubspaceNetworkCV, pd.DataFrame]:
    X, Y, _ = datasets.make_subspace(120, 6, 4, 2, random_state=0)
    frame = pd.DataFrame(X * [1, 2, 3, 4, 5, 6], columns=[f"x {k}" for k in range(6)])
    model = SubspaceNetworkCV(ranks=(2,), alphas=(0.01,), max_layers=1, cv=2, random_state=0)
    model.fit(frame, Y)
    if n_layers > 1:
        deep = SubspaceNetworkRegressor(2, n_layers, alpha=0.01, joint_tuning=False)
        deep.fit(frame, Y)
        targets = CensoredTargets.from_bounds(Y, 0.0)
        model._store(deep.layers_, targets)
    return model, frame


@pytest.mark.parametrize("n_layers", [1, 2])
def test_the_rows_are_not_needed_to_know_the_first_layer(n_layers: int) -> None:
    model, frame = _fitted(n_layers)
    assert model.n_layers_ == n_layers
    found = shared_directions(model, 5)
    assert found is not None
    expected = model.subspaces(0, frame)
    assert found.features.shape == (6, len(expected)) == (6, 2)
    for column, subspace in enumerate(expected):
        np.testing.assert_allclose(found.features.iloc[:, column], subspace.feature_loadings)
        np.testing.assert_allclose(found.targets.iloc[:, column], subspace.target_loadings)


def test_cosines_are_those_of_the_model() -> None:
    model, _ = _fitted(1)
    np.testing.assert_allclose(task_cosines(model), model.task_similarity(), atol=1e-12)


def test_a_model_without_effects_has_no_directions() -> None:
    model, _ = _fitted(1)
    model.coef_ = np.zeros_like(model.coef_)
    assert shared_directions(model, 5) is None
    assert not np.isnan(task_cosines(model).to_numpy()).any()


def test_a_component_without_a_share_is_left_out() -> None:
    model, frame = _fitted(1)
    U, V = model.best_estimator_.U_, model.best_estimator_.V_
    model.coef_ = np.outer(U[:, 0], V[0]) + 1e-3 * np.outer(U[:, 1], V[1])
    assert [subspace.share < 0.005 for subspace in model.subspaces(0, frame)] == [False, True]
    found = shared_directions(model, 5)
    assert found is not None
    assert found.features.columns.tolist() == ["1"]
    assert found.shares == [percent(1.0)]


def test_the_most_alike_are_not_the_same_outcome() -> None:
    names = ["a", "b", "c"]
    cosines = pd.DataFrame([[1, 0.2, -0.9], [0.2, 1, 0.3], [-0.9, 0.3, 1]], names, names)
    assert similarity_words(cosines.iloc[1:, 1:]) == (
        "The features move b and c most alike (cosine 0.30)."
    )
    assert similarity_words(cosines) == (
        "The features move a and c in the most opposite directions (cosine −0.90)."
    )
    assert similarity_words(cosines.iloc[:1, :1]) == ""


def _directions(*features: str) -> Directions:
    loadings = np.linspace(1.0, -0.5, len(features))
    return Directions(
        pd.DataFrame({"1": loadings}, index=list(features)),
        pd.DataFrame({"1": [3.0, -2.0, 0.1]}, index=["ADAS", "MMSE", "other"]),
        ["100 %"],
    )


def test_words_have_signs_and_leave_out_what_is_small() -> None:
    (component,) = in_words(_directions("volume", "age"))
    assert component.features == ["+\u00a0volume", "−\u00a0age"]
    assert component.targets == ["+\u00a0ADAS", "−\u00a0MMSE"]


def test_features_that_are_no_regions_have_no_map() -> None:
    assert draw_cortex(_directions("age", "volume")) is None


def test_regions_are_drawn_with_their_note_as_a_caption() -> None:
    with drawing():
        cortex = draw_cortex(_directions("lh_insula_thickness", "rh_insula_thickness", "age"))
    assert cortex is not None
    (picture,) = cortex.pictures
    assert "age" in picture.caption
    assert "<image" in picture.svg
    assert "component 1 (100 %)" in picture.svg


def test_without_the_extra_the_page_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from deeptobit.exceptions import MissingExtraError

    def missing(*_: object, **__: object) -> SimpleNamespace:
        raise MissingExtraError("nilearn is not installed; pip install 'deeptobit[brain]'")

    monkeypatch.setattr(sys.modules["deeptobit.app.report.brain"], "draw_brain_maps", missing)
    cortex = draw_cortex(_directions("lh_insula_thickness"))
    assert cortex is not None
    assert cortex.pictures == []
    assert "nilearn is not installed" in cortex.note
