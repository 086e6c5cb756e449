"""A pipeline.

A table with words, numbers and missing cells, a score with a ceiling, and scikit-learn's own tools.
`ColumnTransformer` encodes, `Pipeline` combines the steps, and `GridSearchCV` chooses the penalty.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from deeptobit import TobitRegressor

rng = np.random.default_rng(0)
n = 250
table = pd.DataFrame(rng.normal(size=(n, 30)), columns=[f"volume_{k}" for k in range(30)])
latent = 28 + 1.2 * table["volume_0"] - 0.8 * table["volume_1"] + rng.normal(0, 1.5, n)
table["sex"] = rng.choice(["f", "m"], n)
table["scanner"] = rng.choice(["A", "B", "C"], n)
table = table.mask(rng.random(table.shape) < 0.03)
y = (latent + (table["scanner"] == "B")).clip(upper=30).round(1)
print(
    f"{(y == 30).mean():.0%} have the full score; {table.isna().to_numpy().sum()} cells are blank"
)

words, numbers = ["sex", "scanner"], [name for name in table if name.startswith("volume")]
encode = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
    (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(drop="first")), words),
)
pipeline = make_pipeline(encode, TobitRegressor(upper=30))
alphas = np.geomspace(0.001, 10, 9)
search = GridSearchCV(pipeline, {"tobitregressor__alpha": alphas}, cv=5)
search.fit(table[:200], y[:200])
(alpha,) = search.best_params_.values()
print(f"alpha {alpha:.3g}, R² on folds {search.best_score_:.2f}")
print(f"R² on 50 new rows {search.score(table[200:], y[200:]):.2f}")

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
mean, sd = search.cv_results_["mean_test_score"], search.cv_results_["std_test_score"]
ax.errorbar(alphas, mean, sd / np.sqrt(5), marker="o", color="tab:green", capsize=3)
ax.set(xscale="log", xlabel="alpha, the ridge on β/σ", ylabel="R² on held-out folds")
figure.savefig("pipeline.png", dpi=120)
