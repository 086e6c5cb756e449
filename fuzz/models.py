"""The loader of models, and of fitted studies: ``deeptobit.load`` and ``study.load_fitted``."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from deeptobit import (
    AutoTobitRegressor,
    MixedTobitRegressor,
    SubspaceNetworkCV,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
    load,
)
from deeptobit.app.study import (
    build_data,
    fit_study,
    load_fitted,
    read_data,
    read_study,
    save_fitted,
)
from deeptobit.exceptions import ModelFileError
from deeptobit.files import read_state
from deeptobit.likelihood import Gaussian, NoiseByTask, Spread, StudentT, TwoPiece
from fuzz.state_files import mutate_state_file
from fuzz.target import Target

_STUDY = """\
data.file = "a.csv"
targets.MMSE = {lower = 0, upper = 30}
model.members = ["stack"]
model.cv = 2
"""


def _read(path: Path) -> None:
    """Load the model; one that was loaded answers or says why it does not."""
    kind, _ = read_state(path)
    if kind == "study":
        load_fitted(path)
        return
    model = load(path)
    if not hasattr(model, "sigma_"):
        return
    X = np.zeros((2, model.n_features_in_))
    if isinstance(model, MixedTobitRegressor):
        model.predict(X, groups=[0.0, 99.0], time=[0.0, 1.0])
    else:
        model.predict_interval(X)


@cache
def _seeds() -> dict[str, bytes]:
    """A model of every class, in every situation that is stored differently."""
    index = np.arange(1.0, 41.0)
    X = pd.DataFrame({"age": np.sin(index), "volume": np.cos(1.7 * index)})
    Y = np.clip(np.column_stack([2.0 + X.age, 1.0 + X.volume]) + np.sin(7.3 * index)[:, None], 0, 3)
    network = SubspaceNetworkRegressor(1, 2, upper=3.0, noise=StudentT(5))
    begun = SubspaceNetworkRegressor(1, 2, upper=3.0, random_state=0)
    one = SubspaceTobitRegressor(1, upper=3.0, random_state=0)
    search = SubspaceNetworkCV(ranks=[1], alphas=2, cv=2, max_layers=1, upper=3.0)
    auto = AutoTobitRegressor(cv=2, upper=3.0, random_state=np.random.RandomState(0)).fit(X, Y)
    spread = Spread(np.array([0.2, 0.0]), np.ones(2), np.ones(2))
    auto._chosen_noise = NoiseByTask([Gaussian(), TwoPiece(StudentT(4), 0.35)], spread)
    trees = AutoTobitRegressor(members=("stack", "trees"), cv=2, upper=3.0, random_state=0)
    mixed = MixedTobitRegressor(alpha=0.1, visit_rank=0, upper=3.0)
    frame = X.assign(site=["A", "B"] * 20, MMSE=Y[:, 0])
    models: dict[str, Any] = {
        "unfitted": TobitRegressor(lower={"MMSE": None}),
        "tobit": TobitRegressor(upper=3.0).fit(X, Y).calibrate_intervals(X, Y),
        "formula": TobitRegressor.from_formula("MMSE ~ center(age) + site", frame, upper=3.0),
        "stream": one.partial_fit(X, Y),
        "network": network.fit(X, Y),
        "network stream": begun.partial_fit(X, Y),
        "search": search.fit(X, Y),
        "auto": auto,
        "trees": trees.fit(X, Y),
        "mixed": mixed.fit(X, Y, groups=np.arange(40) % 10, time=np.arange(40) // 10),
    }
    with TemporaryDirectory() as folder:
        for name, model in models.items():
            options = {"people": True} if name == "mixed" else {}
            model.save(Path(folder, name), **options)
        _save_study(Path(folder))
        return {name: Path(folder, name).read_bytes() for name in [*models, "study"]}


def _save_study(folder: Path) -> None:
    rows = [f"{age},{age % 3},{min(90 - age, 30)}" for age in range(40, 80)]
    (folder / "a.csv").write_text("\n".join(["age,visits,MMSE", *rows]))
    (folder / "study.toml").write_text(_STUDY)
    study = read_study(folder / "study.toml")
    save_fitted(fit_study(study, build_data(study, read_data(study))), folder / "study")


TARGET = Target("models", "a.model", _read, ModelFileError, _seeds, mutate_state_file)
