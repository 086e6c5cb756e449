"""A limit of detection.

An assay reports nothing below a limit, and the limit fell when the laboratory changed its kit.
Filling in half of the limit, or dropping samples below it, biases the slope; the censored
likelihood does not.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from deeptobit import TobitRegressor

rng = np.random.default_rng(1)
age = rng.uniform(50, 90, 300)
true_slope = 0.05
log_tau = -3.4 + true_slope * age + rng.normal(0, 0.8, 300)
limit = np.where(rng.random(300) < 0.5, 0.4, -0.2)  # of the old and of the new kit, in logarithms
y = np.maximum(log_tau, limit)  # what is recorded
below = y == limit
print(f"{below.mean():.0%} of the samples are below their limit")

X = age[:, None]
tobit = TobitRegressor(lower=None).fit(X, y, lower=limit[:, None])
half = LinearRegression().fit(X, np.where(below, limit - np.log(2), y))
dropped = LinearRegression().fit(X[~below], y[~below])
interval = tobit.summary().loc[("y", "x0"), ["ci_low", "ci_high"]]

print(f"true slope               {true_slope:.3f}")
print(f"half of the limit        {half.coef_[0]:.3f}")
print(f"not detected are dropped {dropped.coef_[0]:.3f}")
print(
    f"Tobit                    {tobit.coef_[0, 0]:.3f}, 95 % interval", interval.round(3).to_list()
)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.scatter(age[~below], y[~below], s=12, color="0.4", label="detected")
ax.scatter(age[below], y[below], s=22, marker="v", color="0.7", label="below the limit")
line = np.array([[50.0], [90.0]])
ax.plot(line, -3.4 + true_slope * line, color="black", ls=":", label="truth")
ax.plot(line, tobit.predict(line, kind="latent"), color="tab:green", label="Tobit")
ax.plot(line, half.predict(line), color="tab:orange", label="half of the limit")
ax.plot(line, dropped.predict(line), color="tab:red", label="dropped")
ax.set(xlabel="age", ylabel="log concentration")
ax.legend(frameon=False, ncols=2)
figure.savefig("limit_of_detection.png", dpi=120)
