"""Weights and clusters.

Four visits of each of 80 people are not 320 people. Standard errors that ignore this are too
small; cluster-robust ones are not, as 200 repetitions of the study show. Weights correct for people
who were less likely to be invited.
"""

import matplotlib.pyplot as plt
import numpy as np

from deeptobit import TobitRegressor


def study(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Visits of people: a feature of the person, a score from 0 to 10, weights, and who it is."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(80), 4)
    feature = rng.normal(size=80)
    weight = np.where(feature > 0, 2.0, 1.0)  # those were half as likely to be invited
    habit = rng.normal(0, 1.5, 80)
    score = 5 + 0.5 * feature[person] + habit[person] + rng.normal(0, 1.5, 320)
    return feature[person, None], np.clip(score, 0, 10), weight[person], person


X, y, weight, person = study(0)
model = TobitRegressor(upper=10).fit(X, y, sample_weight=weight)
for kind, groups in (("observed", None), ("robust", None), ("cluster", person)):
    row = model.summary(cov_type=kind, groups=groups).loc[("y", "x0")]
    print(f"{kind:9s} {row['coef']:.2f} ± {row['std_err']:.2f}  p = {row['p_value']:.3f}")

slopes, plain, robust = [], [], []
for seed in range(1, 201):
    X, y, weight, person = study(seed)
    model = TobitRegressor(upper=10).fit(X, y, sample_weight=weight)
    slopes.append(model.coef_[0, 0])
    plain.append(model.summary().loc[("y", "x0"), "std_err"])
    robust.append(model.summary(cov_type="cluster", groups=person).loc[("y", "x0"), "std_err"])
slopes, plain, robust = map(np.array, (slopes, plain, robust))
print(
    f"spread of the slope over 200 studies {slopes.std():.2f}; "
    f"mean standard error {plain.mean():.2f} plain, {robust.mean():.2f} cluster-robust"
)
for name, error in (("plain", plain), ("cluster-robust", robust)):
    held = np.mean(np.abs(slopes - 0.5) < 1.96 * error)
    print(f"{name} 95 % intervals hold the true slope in {held:.0%} of the studies")

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.hist(plain, bins=20, alpha=0.7, color="tab:red", label="plain standard errors")
ax.hist(robust, bins=20, alpha=0.7, color="tab:green", label="cluster-robust")
ax.axvline(slopes.std(), color="black", ls=":", label="true spread of the slope")
ax.set(xlabel="standard error of the slope", ylabel="studies")
ax.legend(frameon=False)
figure.savefig("weights_and_clusters.png", dpi=120)
