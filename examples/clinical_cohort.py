"""A clinical cohort.

Thirty bounded scores of 400 simulated patients from 138 regions of the brain. `AutoTobitRegressor`
needs only the bounds; the table is about 160 held-out people.
"""

import matplotlib.pyplot as plt
import pandas as pd

from deeptobit import AutoTobitRegressor, datasets
from deeptobit.metrics import centred_anmse

cohort = datasets.make_clinical_cohort(400, random_state=0)
X, X_new, Y, Y_new = cohort.X[:240], cohort.X[240:], cohort.Y[:240], cohort.Y[240:]
bounds = {"lower": cohort.lower, "upper": cohort.upper}
model = AutoTobitRegressor(**bounds, members=("stack",), random_state=0).fit(X, Y)

low, high = model.predict_interval(X_new, coverage=0.9)
inside = ((Y_new >= low) & (Y_new <= high)).astype(float).where(Y_new.notna())
lower, upper = pd.Series(cohort.lower), pd.Series(cohort.upper)
table = pd.DataFrame(
    {
        "at a bound": (Y.eq(lower) | Y.eq(upper)).mean(),
        "R²": 1 - centred_anmse(Y_new.to_numpy(), model.predict(X_new), multioutput="raw_values"),
        "in 90 % interval": inside.mean(),
    }
)
print(f"rank {model.rank_}, noise {model.noise_}")
print(table.sort_values("R²", ascending=False).head(8).round(2))
held = inside.mean().mean()
print(f"mean over 30 scores: R² {table['R²'].mean():.2f}, in their intervals {held:.0%}")

figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
for ax, score in zip(axes, ("ADAS13_bl", "MMSE_bl"), strict=True):
    model.plot_predictions(X_new, Y_new, score, ax=ax)
figure.savefig("clinical_cohort.png", dpi=120)
