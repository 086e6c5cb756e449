"""Store models of the present format for ever: ``python -m tests.files.store``.

To be run once for every new version of the format or of the state, never again for an old one:
``test_stored.py`` loads all of them.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from deeptobit import (
    SubspaceNetworkCV,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
)
from deeptobit.arrays import FloatArray
from deeptobit.files.container import VERSION
from deeptobit.likelihood import StudentT

FOLDER = Path(__file__).parent / "stored"


def rows(n_rows: int) -> tuple[pd.DataFrame, FloatArray]:
    """Rows that need no random numbers: whoever loads a model later makes the same."""
    index = np.arange(1.0, n_rows + 1.0)
    X = np.column_stack([np.sin(index), np.cos(1.7 * index), np.sin(2.9 * index)])
    Y = np.column_stack([2.0 + X @ [1.0, -1.0, 0.5], 1.0 + X @ [0.5, 0.5, -1.0]])
    Y = np.clip(Y + np.sin(7.3 * index)[:, None] * [1.0, -0.7], 0.0, 3.0)
    return pd.DataFrame(X, columns=["age", "volume", "µ"]), Y


def models() -> dict[str, Any]:
    """One of each estimator, in as many situations as four models can be."""
    X, Y = rows(90)
    frame = X.assign(site=["A", "B", "C"] * 30, MMSE=Y[:, 0])
    network = SubspaceNetworkRegressor(2, 2, upper=3.0, noise=StudentT(5)).fit(X, Y)
    return {
        "tobit": TobitRegressor(upper={"y0": 3.0}).fit(X.to_numpy(), Y),
        "stream": SubspaceTobitRegressor(2, upper=3.0, random_state=0).partial_fit(X, Y),
        "network": network.calibrate_intervals(X, Y),
        "formula": SubspaceNetworkCV.from_formula(
            "MMSE ~ center(age) * site", frame, ranks=[1], alphas=[0.1], cv=2, upper=3.0
        ),
    }


def store() -> None:
    """Write models beside the predictions they make."""
    for name, model in models().items():
        path = FOLDER / f"{name}_{VERSION}.model"
        if path.exists():
            raise FileExistsError(f"{path} is stored for ever; a new format has a new version")
        model.save(path)
        path.with_suffix(".json").write_text(json.dumps(expectations(model)) + "\n")


def expectations(model: Any) -> dict[str, Any]:
    """Numbers that a loaded model must reproduce."""
    X, _ = rows(8)
    features: Any = np.column_stack([X, X])[:, : model.n_features_in_]
    if hasattr(model, "feature_names_in_"):
        features = pd.DataFrame(features, columns=model.feature_names_in_)
    found = {
        "predict": model.predict(features),
        "latent": model.predict(features, kind="latent"),
        "interval": model.predict_interval(features),
    }
    if hasattr(model, "formula_"):
        found["raw"] = model.predict(X.assign(site=list("ABCABCAB")))
    return {name: np.asarray(value).tolist() for name, value in found.items()}


if __name__ == "__main__":
    store()
