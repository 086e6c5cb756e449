"""Write reduced_rank.csv: four outcomes that share a subspace, for rrvglm.R and the tests.

All numbers are rounded before they are censored, and the file holds the
rounded numbers in full: the file, not this script, is the reference.
"""

from pathlib import Path

import numpy as np
import pandas as pd

ROWS = 600
MIXING = [[1.0, 0.3, 0.0, 0.0], [0.0, 1.0, 0.0, 0.5], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
U = np.array([[1.0, 0.2], [-0.6, 1.1], [0.8, 0.5], [0.3, -0.9]])
V = np.array([[0.9, -0.5, 0.0, 0.4], [0.1, 0.7, -0.8, 0.2]])
INTERCEPT, SIGMA = [0.4, 0.8, -0.2, 0.6], [0.8, 1.2, 1.0, 0.6]


def main() -> None:
    """Correlated features, coefficients UV of rank 2, and a different noise for every outcome."""
    rng = np.random.default_rng(20240301)
    X = np.round(rng.normal(size=(ROWS, 4)) @ np.array(MIXING), 5)
    latent = X @ (U @ V).T + INTERCEPT + rng.normal(size=(ROWS, 4)) * SIGMA
    names = [*(f"x{d}" for d in range(4)), *(f"y{t}" for t in range(4))]
    data = pd.DataFrame(np.column_stack([X, np.round(latent, 5)]), columns=names)
    data.to_csv(Path(__file__).with_name("reduced_rank.csv"), index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
