import numpy as np

from deeptobit.app.study.fitting import FoldPrediction, join_folds
from deeptobit.likelihood import Gaussian, Predictive
from deeptobit.targets import CensoredTargets


def _part(rows: list[int], n_stages: int) -> FoldPrediction:
    """Scores that tell their row, and stages that tell their layer."""
    latent = np.array(rows, dtype=float)[:, None]
    predictive = Predictive(Gaussian(), latent, np.full(latent.shape, 1.0 + rows[0]))
    null = Predictive(Gaussian(), -latent, np.ones_like(latent))
    stages = [latent + 10.0 * layer for layer in range(n_stages)]
    return FoldPrediction(np.array(rows), predictive, null, stages)


def test_rows_come_back_in_the_order_of_the_table_whatever_fold_ends_first() -> None:
    targets = CensoredTargets.from_bounds(np.zeros((5, 1)), lower=-1.0, names=["y"])
    parts = [_part([4, 0], 1), _part([1, 3], 3), _part([2], 2)]
    first, second = join_folds(targets, parts, 0.9), join_folds(targets, parts[::-1], 0.9)
    np.testing.assert_array_equal(first.predictive.latent.ravel(), np.arange(5.0))
    np.testing.assert_array_equal(first.predictive.sigma.ravel(), [5.0, 2.0, 3.0, 2.0, 5.0])
    np.testing.assert_array_equal(first.null.latent.ravel(), -np.arange(5.0))
    np.testing.assert_array_equal(first.predictive.lower, [-1.0])
    np.testing.assert_array_equal(first.predictive.latent, second.predictive.latent)
    assert len(first.stages) == 3
    np.testing.assert_array_equal(first.stages[0].ravel(), np.arange(5.0))
    np.testing.assert_array_equal(first.stages[2].ravel(), [0.0, 21.0, 12.0, 23.0, 4.0])
