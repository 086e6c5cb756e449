"""Write data.csv: simulated visits with censored targets, for tobit.R and the tests.

All numbers are rounded before they are censored, and the file holds the
rounded numbers in full: the file, not this script, is the reference.
"""

from pathlib import Path

import numpy as np
import pandas as pd

ROWS, SUBJECTS = 300, 100
rng = np.random.default_rng(20240229)


def rounded(values: np.ndarray) -> np.ndarray:
    """Round every value to 6 significant digits."""
    return np.array([float(f"{value:.6g}") for value in values])


# Subjects, each with a random number of visits in random order.
subject = rng.integers(SUBJECTS, size=ROWS)
subject_age = rng.normal(70, 7, SUBJECTS)
subject_apoe4 = rng.binomial(1, 0.4, SUBJECTS)
subject_effect = rng.normal(0, 7, SUBJECTS)

# Features: different scales, correlated with one another.
age = rounded(subject_age[subject] + rng.uniform(0, 6, ROWS))
apoe4 = subject_apoe4[subject]
volume = rounded(7000 - 70 * (age - 70) - 300 * apoe4 + rng.normal(0, 850, ROWS))
marker = rounded(np.exp(0.03 * (age - 70) + 0.5 * apoe4 + rng.normal(0, 0.6, ROWS)))

# The value before censoring: a linear predictor plus subject effect plus noise.
predictor = 7 + 0.6 * (age - 70) - 0.006 * (volume - 7000) + 5 * apoe4 + 1.5 * marker
latent = predictor + subject_effect[subject] + rng.normal(0, 9, ROWS)

# A limit of detection that differs from row to row.
limit_of = rounded(rng.uniform(0, 15, ROWS))

# Intervals: a quarter each exact, below a bound, above a bound, between two bounds.
value = rounded(latent)
below = rounded(latent - rng.uniform(0.5, 8, ROWS))
above = rounded(latent + rng.uniform(0.5, 8, ROWS))
kind = rng.integers(4, size=ROWS)
interval_low = np.choose(kind, [value, np.full(ROWS, -np.inf), below, below])
interval_high = np.choose(kind, [value, above, np.full(ROWS, np.inf), above])

data = pd.DataFrame(
    {
        "age": age,
        "volume": volume,
        "apoe4": apoe4,
        "marker": marker,
        "visit_of": subject + 1,
        "weight": rounded(rng.uniform(0.25, 3.5, ROWS)),
        "left": rounded(latent - 8).clip(min=0),
        "right": rounded(latent + 7).clip(max=30),
        "both": value.clip(0, 30),
        "limit": np.maximum(value, limit_of),
        "limit_of": limit_of,
        "interval_low": interval_low,
        "interval_high": interval_high,
    }
)
data.to_csv(Path(__file__).with_name("data.csv"), index=False, lineterminator="\n")
