"""Subspaces.

Nine scores depend on twenty regions through two directions. They are found up to a
rotation, which no data can determine; their canonical form says which regions move which scores.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from deeptobit import SubspaceTobitRegressor
from deeptobit.metrics import principal_angles

rng = np.random.default_rng(0)
regions = [f"temporal_{k}" for k in range(10)] + [f"frontal_{k}" for k in range(10)]
scores = [f"memory_{k}" for k in range(5)] + [f"planning_{k}" for k in range(4)]
V = np.zeros((2, 20))
V[0, :10], V[1, 10:] = rng.uniform(0.2, 0.6, 10), rng.uniform(0.2, 0.4, 10)
U = np.zeros((9, 2))
U[:5, 0], U[5:, 1], U[3:6, 1] = 1.5, 1.2, 0.6
X = pd.DataFrame(rng.normal(size=(500, 20)), columns=regions)
latent = 4 + X.to_numpy() @ (U @ V).T + rng.normal(size=(500, 9))
Y = pd.DataFrame(np.clip(latent, 0, 6), columns=scores)

model = SubspaceTobitRegressor(rank=2, lower=0, upper=6).fit(X, Y)
angles = np.degrees(principal_angles(U, model.U_))
print("angles between the true and the found subspace:", angles.round(1), "degrees")
for subspace in model.subspaces():
    print(subspace)

figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
model.plot_subspaces(ax=ax)
figure.savefig("subspaces.png", dpi=120)
