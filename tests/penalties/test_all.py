"""Every penalty that ships keeps what it promises, and each broken one is found."""

from collections.abc import Callable

import numpy as np
import pytest

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.checks import check_penalty
from deeptobit.estimators.inputs import read_penalty
from deeptobit.penalties import PENALTIES, Group, Penalty, Ridge

SMOOTHED = Group(0.5).smoothed(0.5)


@pytest.mark.parametrize("name", PENALTIES)
def test_a_penalty_that_ships_passes_the_check(name: str) -> None:
    check_penalty(PENALTIES[name]())


@pytest.mark.parametrize("sparsity", [0.1, 1.0])
def test_every_sparsity_passes_the_check(sparsity: float) -> None:
    check_penalty(Group(sparsity))


class Steep(Ridge):
    def gradient(self, V: FloatArray) -> FloatArray:
        return 2.0 * V


class Bent(Ridge):
    def curvature(self, V: FloatArray, direction: FloatArray) -> FloatArray:
        return 1.1 * direction


class Impure(Ridge):
    def gradient(self, V: FloatArray) -> FloatArray:
        V *= 2.0
        return V


class Wide(Ridge):
    def variances(self, V: FloatArray) -> FloatArray:
        return np.full(V.shape[1], 2.0)


class Zeros(Ridge):
    def zeros(self, V: FloatArray) -> BoolArray:
        return np.asarray(~V.any(axis=0))


class Eager(Group):
    def threshold(self, V: FloatArray) -> FloatArray:
        return 0.5 * super().threshold(V)


class Unsmoothed(Group):
    def smoothed(self, width: float) -> Group:
        return self


class Rotated(Group):
    @property
    def rotation_invariant(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Steep, "gradient and the slope of value"),
        (Bent, "curvature and the slope of gradient"),
        (Impure, "V was modified"),
        (Wide, "variances: value"),
        (Zeros, "zeros without has_kinks"),
        (Eager, "threshold and the slope at the kink"),
        (Unsmoothed, "the smoothed penalty has kinks"),
        (Rotated, "rotation_invariant"),
    ],
)
def test_a_broken_penalty_is_found(broken: Callable[[], Penalty], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_penalty(broken())


def test_what_is_no_penalty_is_refused() -> None:
    with pytest.raises(TypeError, match=r"'ridge' is not a deeptobit\.penalties\.Penalty"):
        check_penalty("ridge")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["lasso", None, 3, Ridge])
def test_an_unknown_penalty_names_those_there_are(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"penalty must be 'ridge', 'group' or a deeptobit"):
        read_penalty(wrong)


def test_feature_sparsity_belongs_to_ridge_and_group() -> None:
    assert read_penalty("group", 0.3) == read_penalty("ridge", 0.3) == Group(0.3)
    with pytest.raises(ValueError, match="feature_sparsity belongs to penalty='ridge'"):
        read_penalty(Ridge(), 0.3)
