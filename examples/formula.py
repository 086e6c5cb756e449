"""A formula.

A curved effect of age and its interaction with a gene, written as a formula. The band is a
confidence interval of the mean score, which cannot leave the scale.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from deeptobit import TobitRegressor

rng = np.random.default_rng(0)
data = pd.DataFrame({"age": rng.uniform(55, 90, 600), "apoe4": rng.choice(["no", "yes"], 600)})
decline = 0.004 * (data["age"] - 55) ** 2 * np.where(data["apoe4"] == "yes", 1.8, 1.0)
data["MMSE"] = np.clip(np.round(30.5 - decline + rng.normal(0, 2, 600)), 0, 30)
print(f"{(data['MMSE'] == 30).mean():.0%} have the full score")

model = TobitRegressor.from_formula("MMSE ~ bs(age, df=4) * apoe4", data, upper=30)
plain = TobitRegressor.from_formula("MMSE ~ bs(age, df=4) + apoe4", data, upper=30)
print("does the course depend on the gene?")
print(model.likelihood_ratio_test(plain).round(4))

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for gene, color in (("no", "tab:blue"), ("yes", "tab:orange")):
    seen = data[data["apoe4"] == gene]
    ax.scatter(seen["age"], seen["MMSE"], s=6, alpha=0.4, color=color)
    line = pd.DataFrame({"age": np.linspace(55.5, 89.5, 60), "apoe4": gene})
    low, high = model.predict_mean_interval(line)
    ax.fill_between(line["age"], low, high, color=color, alpha=0.25, lw=0)
    ax.plot(line["age"], model.predict(line), color=color, label=f"apoe4: {gene}")
ax.axhline(30, color="0.6", lw=0.8, ls="--")
ax.set(xlabel="age", ylabel="MMSE, expected and recorded")
ax.legend(frameon=False)
figure.savefig("formula.png", dpi=120)
