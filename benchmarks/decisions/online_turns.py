"""How often the online solver turns its coordinates, how large its blocks are, and its damping."""

from unittest.mock import patch

import numpy as np

from benchmarks.decisions.batches import Interpreted
from benchmarks.decisions.table import Table
from benchmarks.online import N_TRAIN, RANK, SEEDS, ill_conditioned_data, paper_data, ratio, solve
from deeptobit.datasets import make_subspace
from deeptobit.likelihood import Gaussian
from deeptobit.metrics import anmse
from deeptobit.online import OnlineSettings, OnlineSolver, adaptive
from deeptobit.online import solver as _solver
from deeptobit.targets import CensoredTargets

DEFAULT = (1.3, 2.0, 4)
CHOICES = (
    DEFAULT,
    (1.15, 2.0, 4),
    (1.5, 2.0, 4),
    (1.3, 0.0, 4),
    (1.3, 1.0, 4),
    (1.3, 3.0, 4),
    (1.3, 2.0, 1),
    (1.3, 2.0, 8),
)


def measure() -> Table:
    """Errors over the oracle's, and with more components than the truth has."""
    yield (
        *("turn at", "U wanders", "largest block"),
        *("paper: over the oracle", "worst σ", "batches: over the oracle", "worst σ"),
        *("condition 1e4", "spare rank: rows", "batches of 16", "batches of 64"),
    )
    for turn, wanders, blocks in CHOICES:
        with (
            patch.object(adaptive, "_REWHITEN", turn),
            patch.object(adaptive, "_DRIFT", wanders),
            patch.object(_solver, "_MOST_BLOCKS", blocks),
        ):
            spare = [_spare(size) for size in (1, 16, 64)]
            yield turn, wanders, 64 * blocks, *_paper(1), *_paper(64), _ill_conditioned(), *spare


def _settings(batch_size: int) -> OnlineSettings:
    noise = Interpreted() if batch_size > 1 else Gaussian()  # compiled code takes row after row
    return OnlineSettings(rank=RANK, batch_size=batch_size, noise=noise)


def _paper(batch_size: int) -> tuple[float, float]:
    """Mean ratio to the oracle, and how far the worst σ of all is off, in shares."""
    ratios, errors = [], []
    for seed in SEEDS:
        data = paper_data(seed)
        result = solve(data, batch_size=batch_size, noise=_settings(batch_size).noise)
        ratios.append(ratio(data, result))
        errors.append(float(np.abs(result.sigma / 3.0 - 1.0).max()))
    return float(np.mean(ratios)), max(errors)


def _ill_conditioned() -> float:
    cases = [ill_conditioned_data(seed) for seed in range(3)]
    return max(ratio(data, solve(data)) for data in cases)


def _spare(batch_size: int) -> float:
    """ANMSE of rank 10 on three-layer data of rank 5, mean of four seeds."""
    errors = []
    for seed in range(4):
        X, Y, _ = make_subspace(
            5000,
            50,
            30,
            5,
            n_layers=3,
            skip_connection=True,
            sigma=1.0,
            hidden_sigma=0.3,
            latent_sd=3.0,
            random_state=seed,
        )
        targets = CensoredTargets.from_bounds(Y[:N_TRAIN], 0.0)
        solver = OnlineSolver(_settings(batch_size), 50, 30)
        solver.learn(X[:N_TRAIN], targets.low, targets.high)
        found = solver.result()
        latent = X[N_TRAIN:] @ (found.U @ found.V).T + found.intercept
        errors.append(float(anmse(Y[N_TRAIN:], np.maximum(latent, 0.0))))
    return float(np.mean(errors))
