"""Measure when depth helps: docs/images/depth.png and the table of docs/depth.md.

Run ``python scripts/depth_figure.py`` from the root of the repository; it takes some minutes, and
prints the table in Markdown.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from threadpoolctl import threadpool_limits

from deeptobit import SubspaceNetworkRegressor, datasets
from deeptobit.arrays import FloatArray
from deeptobit.metrics import anmse

TARGET = Path(__file__).parents[1] / "docs" / "images" / "depth.png"
DEPTHS = (1, 2, 3, 4)
SEEDS = (0, 1, 2)
N_ROWS = (300, 1000, 4000)
N_TEST = 2000
TRUTHS: dict[str, dict[str, Any]] = {
    "three layers, with skip": {"n_layers": 3, "skip_connection": True, "hidden_sigma": 0.3},
    "three layers, no skip": {"n_layers": 3, "skip_connection": False, "hidden_sigma": 0.3},
    "one layer": {"n_layers": 1},
}
TRAININGS: dict[str, bool | Literal["auto"]] = {
    "grown only": False,
    "grown and tuned, if it pays": "auto",
}

Errors = dict[tuple[str, int, str], FloatArray]


def main() -> None:
    """Errors over those of one layer, by truth, rows, training and depth."""
    with threadpool_limits(1):
        errors: Errors = dict(measured())
    print("| truth | rows | training | " + " | ".join(f"{k} layers" for k in DEPTHS[1:]) + " |")
    print("|---|---|---|" + "---|" * len(DEPTHS[1:]))
    for (truth, n_rows, training), ratios in errors.items():
        print(f"| {truth} | {n_rows} | {training} | ", end="")
        print(" | ".join(f"{ratio:.3f}" for ratio in ratios[1:]) + " |")
    draw(errors)


def measured() -> Iterator[tuple[tuple[str, int, str], FloatArray]]:
    """Mean over seeds of the held-out ANMSE over that of one layer, for every depth."""
    for truth, options in TRUTHS.items():
        for n_rows in N_ROWS:
            for training, joint_tuning in TRAININGS.items():
                ratios = [ratios_to_one_layer(options, n_rows, joint_tuning, s) for s in SEEDS]
                yield (truth, n_rows, training), np.mean(ratios, axis=0)


def ratios_to_one_layer(
    options: dict[str, Any], n_rows: int, joint_tuning: bool | Literal["auto"], seed: int
) -> FloatArray:
    """One problem: 50 features, 30 outcomes, 5 directions, noise 1 and a signal of sd 3."""
    X, Y, _ = datasets.make_subspace(
        N_TEST + n_rows, 50, 30, 5, sigma=1.0, latent_sd=3.0, random_state=seed, **options
    )
    errors = [
        anmse(
            Y[:N_TEST],
            SubspaceNetworkRegressor(10, depth, joint_tuning=joint_tuning)
            .fit(X[N_TEST:], Y[N_TEST:])
            .predict(X[:N_TEST]),
        )
        for depth in DEPTHS
    ]
    return np.asarray(errors) / errors[0]


def draw(errors: Errors) -> None:
    """One panel per truth: a line per number of rows, dashed where layers are grown only."""
    figure, panels = plt.subplots(
        1, len(TRUTHS), figsize=(10, 3.4), layout="constrained", sharey=True
    )
    for axes, truth in zip(panels, TRUTHS, strict=True):
        for color, n_rows in enumerate(N_ROWS):
            for style, training in zip(("--", "-"), TRAININGS, strict=True):
                label = f"{n_rows} rows" if style == "-" else None
                ratios = errors[truth, n_rows, training]
                axes.plot(DEPTHS, ratios, style, color=f"C{color}", marker="o", ms=3, label=label)
        axes.set(title=f"truth: {truth}", xlabel="layers", xticks=DEPTHS)
        axes.axhline(1.0, color="0.6", lw=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("error over that of one layer")
    panels[-1].legend(
        frameon=False, loc="center", title="solid: tuned, if it pays\ndashed: grown only"
    )
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(TARGET, dpi=130)


if __name__ == "__main__":
    main()
