"""ONNX.

A network becomes a graph that a service, a phone or a spreadsheet plug-in runs without Python.
Here onnxruntime is the other system; both agree to single precision.
"""

import json

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime

from deeptobit import SubspaceNetworkRegressor, datasets

X, Y, truth = datasets.make_subspace(
    1500, 12, 6, 2, n_layers=2, skip_connection=True, sigma=1.0, latent_sd=3.0, upper=8.0,
    random_state=0,
)  # fmt: skip
model = SubspaceNetworkRegressor(rank=3, n_layers=2, upper=8.0).fit(X[:1000], Y[:1000])
model.to_onnx("scores.onnx")

session = onnxruntime.InferenceSession("scores.onnx")
(found,) = session.run(None, {"X": X[1000:].astype(np.float32)})
expected = model.predict(X[1000:])
facts = session.get_modelmeta().custom_metadata_map
print("input", session.get_inputs()[0].shape, "output", session.get_outputs()[0].shape)
print("bounds", json.loads(facts["lower"])[:2], json.loads(facts["upper"])[:2], "…")
print(f"R² on new rows {model.score(X[1000:], Y[1000:]):.3f}")
print(f"largest difference below 1e-5: {np.abs(found - expected).max() < 1e-5}")

figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
axes[0].scatter(expected, found, s=4, color="tab:green")
axes[0].set(xlabel="predict in Python", ylabel="the graph in onnxruntime")
axes[1].hist((found - expected).ravel(), bins=40, color="0.5")
axes[1].set(xlabel="difference", ylabel="predictions")
figure.savefig("onnx_export.png", dpi=120)
