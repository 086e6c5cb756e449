"""Missing outcomes.

Every patient lacks some of twelve related scores. Soon no row is complete. A likelihood skips the
missing entries and uses the rest of the row, and related scores inform one another.
"""

import matplotlib.pyplot as plt
import numpy as np

from deeptobit import AutoTobitRegressor, TobitRegressor, datasets

X, Y, truth = datasets.make_subspace(
    900, 12, 12, 2, sigma=2.0, latent_sd=3.0, upper=6.0, random_state=0
)
X_new, Y_new = X[300:], Y[300:]
rng = np.random.default_rng(0)
lost = rng.random((300, 12))

shares = [0.0, 0.1, 0.2, 0.3, 0.5, 0.7]
scores = {
    "complete rows, a Tobit each": [],
    "all rows, a Tobit each": [],
    "all rows, AutoTobitRegressor": [],
}
print(f"{'missing':>7s} {'complete rows':>13s}  R² of the three methods")
for share in shares:
    seen = np.where(lost < share, np.nan, Y[:300])
    whole = ~np.isnan(seen).any(axis=1)
    found = [
        TobitRegressor(upper=6).fit(X[:300][whole], seen[whole]) if whole.sum() > 60 else None,
        TobitRegressor(upper=6).fit(X[:300], seen),
        AutoTobitRegressor(members=("stack",), upper=6, random_state=0).fit(X[:300], seen),
    ]
    r2 = [np.nan if model is None else model.score(X_new, Y_new) for model in found]
    for column, value in zip(scores.values(), r2, strict=True):
        column.append(value)
    print(f"{share:7.0%}  {whole.sum():12d}  " + "  ".join(f"{value:5.3f}" for value in r2))

figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for (name, column), color in zip(scores.items(), ("tab:red", "0.5", "tab:green"), strict=True):
    ax.plot(shares, column, marker="o", color=color, label=name)
ax.set(xlabel="share of the outcomes that is missing", ylabel="R² on 600 new rows")
ax.legend(frameon=False)
figure.savefig("missing_outcomes.png", dpi=120)
