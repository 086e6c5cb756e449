"""Draw docs/images/one_pass.png: one pass over the paper's data, by default and as in the paper.

Run ``python scripts/one_pass_figure.py`` from the root of the repository.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from deeptobit import SubspaceTobitRegressor, datasets
from deeptobit.arrays import FloatArray
from deeptobit.metrics import principal_angles
from deeptobit.published import PublishedSubspaceTobit
from paper.theory import Snapshots, follow

TARGET = Path(__file__).parents[1] / "docs" / "images" / "one_pass.png"
EVERY = 50


def main() -> None:
    """Two panels: the largest principal angle to the true subspace, and the loss of new rows."""
    X, Y, truth = datasets.make_subspace(4000, 200, 100, 10, sigma=3.0, random_state=0)
    paper = PublishedSubspaceTobit(
        10, alpha=0.0, step_size_V=1e-3, step_size_U=1e-3, sigma=3.0, random_state=0
    )
    passes = {
        "ours": follow(SubspaceTobitRegressor(10), X, Y, every=EVERY),
        "as printed, λ = 0 and η = μ = 0.001": follow(paper, X, Y, every=EVERY),
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for name, snapshots in passes.items():
        left.semilogy(snapshots.n_seen, largest_angles(snapshots, truth.U), label=name)
        right.semilogy(snapshots.n_seen[1:], snapshots.loss_before / Y.shape[1], label=name)
    left.set(xlabel="rows seen", ylabel="largest principal angle to U (degrees)")
    right.set(xlabel="rows seen", ylabel="loss per entry of the next rows")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(TARGET, dpi=130)


def largest_angles(snapshots: Snapshots, U: FloatArray) -> FloatArray:
    """Largest principal angle between the true and the learned subspace, in degrees, (K,)."""
    return np.degrees([_largest_angle(U, learned) for learned in snapshots.U])


def _largest_angle(U: FloatArray, learned: FloatArray) -> float:
    return float(principal_angles(U, learned).max()) if learned.any() else np.pi / 2.0


if __name__ == "__main__":
    main()
