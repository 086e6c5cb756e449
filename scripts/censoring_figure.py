"""Draw docs/images/censoring.png: a score with a ceiling, as least squares and as a Tobit see it.

Run ``python scripts/censoring_figure.py`` from the root of the repository.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from sklearn.linear_model import LinearRegression

from deeptobit import TobitRegressor

TARGET = Path(__file__).parents[1] / "docs" / "images" / "censoring.png"


def main() -> None:
    """Left: what is recorded, and two lines through it. Right: one person's predictive density."""
    rng = np.random.default_rng(4)
    volume = rng.uniform(1.5, 4.5, 150)
    ability = 20.0 + 3.5 * volume + rng.normal(0.0, 2.0, 150)
    score = np.minimum(ability, 30.0)
    full = score == 30.0
    tobit = TobitRegressor(upper=30).fit(volume[:, None], score)
    plain = LinearRegression().fit(volume[:, None], score)

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9, 3.6), width_ratios=(3, 2), layout="constrained"
    )
    hollow = {"facecolors": "none", "edgecolors": "0.65"}
    points = [
        left.scatter(volume[~full], score[~full], s=14, color="0.45", label="recorded below 30"),
        left.scatter(volume[full], score[full], s=14, color="tab:orange", label="recorded as 30"),
        left.scatter(
            volume[full], ability[full], s=14, label="the same without a ceiling", **hollow
        ),
    ]
    line = np.array([[1.5], [4.5]])
    grid = np.linspace(1.5, 4.5, 100)[:, None]
    latent = tobit.predict(line, kind="latent")
    lines = [
        *left.plot(line, plain.predict(line), color="tab:red", label="least squares"),
        *left.plot(line, latent, color="tab:green", label="Tobit, latent"),
        *left.plot(grid, tobit.predict(grid), color="tab:green", ls="--", label="Tobit, E[y|x]"),
    ]
    left.axhline(30, color="0.6", lw=0.8)
    left.set(xlabel="hippocampal volume (ml)", ylabel="points of 30", ylim=(22, 40))
    left.add_artist(left.legend(handles=lines, frameon=False, loc="upper left"))
    left.legend(handles=points, frameon=False, loc="lower right")
    draw_predictive(right, tobit, 2.8)
    figure.savefig(TARGET, dpi=130)


def draw_predictive(ax: Axes, model: TobitRegressor, volume: float) -> None:
    """Density below the bound, a bar for the probability at it."""
    person = [[volume]]
    latent, sigma = float(model.predict(person, kind="latent")[0]), float(model.sigma_[0])
    points = np.linspace(22, 30, 200)
    density = np.exp(-0.5 * ((points - latent) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))
    at_full = float(model.predict_bound_proba(person)[1][0])
    ax.fill_between(points, density, color="0.8")
    ax.bar(30.25, at_full, width=0.5, color="tab:orange")
    ax.axvline(float(model.predict(person)[0]), color="tab:green", ls="--")
    ax.text(28.9, at_full, f"{at_full:.0%} full score", ha="right", va="center")
    ax.set(xlabel=f"points predicted at {volume} ml", ylabel="density, and probability at 30")


if __name__ == "__main__":
    main()
