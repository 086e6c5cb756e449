import numpy as np

from deeptobit.app.study import HeldOut
from deeptobit.app.study.fitting import join_folds
from deeptobit.auto import Fold
from deeptobit.likelihood import Gaussian, Predictive
from deeptobit.targets import CensoredTargets


def _part(rows: list[int], n_stages: int) -> HeldOut:
    """Scores that tell their row, and stages that tell their layer."""
    latent = np.array(rows, dtype=float)[:, None]
    predictive = Predictive(Gaussian(), latent, np.full(latent.shape, 1.0 + rows[0]))
    null = Predictive(Gaussian(), -latent, np.ones_like(latent))
    stages = tuple(latent + 10.0 * layer for layer in range(n_stages))
    return HeldOut(CensoredTargets.from_bounds(latent), predictive, null, stages, 0.9)


def test_rows_come_back_in_the_order_of_the_table() -> None:
    targets = CensoredTargets.from_bounds(np.zeros((5, 1)), lower=-1.0, names=["y"])
    rows = [[4, 0], [1, 3], [2]]
    folds = [Fold(np.setdiff1d(np.arange(5), test), np.array(test)) for test in rows]
    parts = [_part(test, n_stages) for test, n_stages in zip(rows, (1, 3, 2), strict=True)]
    joined = join_folds(targets, folds, parts)
    assert len(joined.targets) == 5
    np.testing.assert_array_equal(joined.predictive.latent.ravel(), np.arange(5.0))
    np.testing.assert_array_equal(joined.predictive.sigma.ravel(), [5.0, 2.0, 3.0, 2.0, 5.0])
    np.testing.assert_array_equal(joined.null.latent.ravel(), -np.arange(5.0))
    np.testing.assert_array_equal(joined.predictive.lower, [-1.0])
    assert len(joined.stages) == 3
    np.testing.assert_array_equal(joined.stages[0].ravel(), np.arange(5.0))
    np.testing.assert_array_equal(joined.stages[2].ravel(), [0.0, 21.0, 12.0, 23.0, 4.0])
