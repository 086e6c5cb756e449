"""How large experiments are: the paper's sizes, and small ones with the same shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Scale:
    """Sizes of the synthetic data, and how often everything is repeated.

    Parameters
    ----------
    name : {"small", "paper"}
    n_samples, n_features, n_tasks, rank : int
        N, D, T and R of the synthetic data.
    sigma : float
        Standard deviation of its noise.
    repeats : int
        Independent data sets, or random splits of one.
    train_shares : tuple of float
    layers : tuple of int
        Depths of the table by layer on synthetic data.
    real_layers : tuple of int
        The same on real data.
    real_ranks : tuple of int
    real_rank : int
        R on real data where it is not varied.
    calibration_layers : int
    """

    name: Literal["small", "paper"]
    n_samples: int
    n_features: int
    n_tasks: int
    rank: int
    sigma: float
    repeats: int
    train_shares: tuple[float, ...]
    layers: tuple[int, ...]
    real_layers: tuple[int, ...]
    real_ranks: tuple[int, ...]
    real_rank: int
    calibration_layers: int

    @property
    def sizes(self) -> dict[str, Any]:
        """Arguments of :func:`deeptobit.datasets.make_subspace`, without the seed.

        Examples
        --------
        >>> PAPER.sizes["n_samples"], PAPER.sizes["sigma"]
        (5000, 3.0)
        """
        names = ("n_samples", "n_features", "n_tasks", "rank", "sigma")
        return {name: getattr(self, name) for name in names}


SMALL = Scale(
    "small",
    n_samples=1000,
    n_features=40,
    n_tasks=20,
    rank=3,
    sigma=3.0,
    repeats=5,
    train_shares=(0.4, 0.8),
    layers=(1, 2, 3),
    real_layers=(1, 2, 3),
    real_ranks=(1, 3, 5),
    real_rank=5,
    calibration_layers=3,
)

PAPER = Scale(
    "paper",
    n_samples=5000,
    n_features=200,
    n_tasks=100,
    rank=10,
    sigma=3.0,
    repeats=10,
    train_shares=(0.4, 0.5, 0.6, 0.7, 0.8),
    layers=(1, 2, 3, 10, 20),
    real_layers=(1, 2, 3, 5, 10),
    real_ranks=(1, 3, 5, 10),
    real_rank=5,
    calibration_layers=6,
)
