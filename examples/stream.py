"""A stream of rows.

Rows arrive in batches and are not kept. `partial_fit` learns them in one pass, without a step
size to tune, and converges to the subspace that forty outcomes share.
"""

import matplotlib.pyplot as plt
import numpy as np

from deeptobit import SubspaceTobitRegressor, datasets
from deeptobit.metrics import principal_angles

X, Y, truth = datasets.make_subspace(8000, 60, 40, 4, sigma=3.0, random_state=0)
X_new, Y_new = X[6000:], Y[6000:]

model = SubspaceTobitRegressor(rank=4)
seen, angles, r2 = [], [], []
for start in range(0, 6000, 500):
    model.partial_fit(X[start : start + 500], Y[start : start + 500])
    seen.append(start + 500)
    angles.append(np.degrees(principal_angles(truth.U, model.U_).max()))
    r2.append(model.score(X_new, Y_new))
    if seen[-1] in (500, 1000, 2000, 6000):
        print(f"{seen[-1]:5d} rows: largest angle {angles[-1]:5.2f} degrees, R² {r2[-1]:.4f}")

batch = SubspaceTobitRegressor(rank=4, solver="batch").fit(X[:6000], Y[:6000])
print(f"all rows at once, to the optimum:  R² {batch.score(X_new, Y_new):.4f}")

figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
axes[0].semilogy(seen, angles, marker="o", color="tab:green")
axes[0].set(xlabel="rows seen", ylabel="largest principal angle (degrees)")
axes[1].plot(seen, r2, marker="o", color="tab:green", label="stream")
axes[1].axhline(batch.score(X_new, Y_new), color="0.5", ls=":", label="batch optimum")
axes[1].set(xlabel="rows seen", ylabel="R² on 2000 new rows")
axes[1].legend(frameon=False)
figure.savefig("stream.png", dpi=120)
