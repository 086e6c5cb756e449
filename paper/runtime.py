"""Table 4 of the paper: seconds of one training."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import Lasso, LinearRegression, MultiTaskLasso, Ridge

from deeptobit import (
    CensoredTargets,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
)
from deeptobit.app.study import Baseline
from deeptobit.datasets import make_subspace
from paper.arrays import FloatArray
from paper.baselines import MLPBaseline, TraceNormBaseline
from paper.recipes import PUBLISHED, PrintedNetwork, printed_layer
from paper.section import Claim, Claimant, Context, Scale, Section, TableOf, with_settings
from paper.verdicts import claim_over_repeats, mean_and_sd

if TYPE_CHECKING:
    import pandas as pd


_REPEATS = 3  # timings of different methods differ by far more than those of one
_LAYERS = 3
_PRINTED, _PRINTED_NETWORK = "SN as printed, one layer", "SN as printed, three layers"
_ONLINE, _NETWORK = "SN, ours, one layer in one pass", "SN, ours, three layers in one pass"
_BATCH = "SN, ours, one layer in batch mode"
_DEEPER = (_PRINTED_NETWORK, _NETWORK)
_TOBIT, _DEEP = "Censor (Tobit)", "DNN"
# Table 4 of the paper, in seconds on six cores, with a GPU for the DNN.
PAPER = {
    "Least squares": 0.02,
    "LS + ℓ2": 0.02,
    "LS + ℓ1": 18.4,
    "Multi-trace": 32.3,
    "Multi-ℓ2,1": 27.0,
    _TOBIT: 1680.0,
    _PRINTED: 109.0,
    _PRINTED_NETWORK: 3 * 109.0,
    _ONLINE: 109.0,
    _NETWORK: 3 * 109.0,
    _DEEP: 659.0,
}
_TEXT = """\
Seconds of one training on all rows, one method at a time, after compilation. “As printed” is \
Algorithm 1 in plain NumPy with constants of the authors' scripts, row by row; its speed does not \
depend on them. Features and outcomes are as drawn. The paper's times \
are of Matlab, Python and TensorFlow on six cores, with a GPU for the DNN; ours are of this \
machine: compare orders of magnitude. Multi-trace includes the choice of its penalty by five \
folds, the DNN that of one of two weight decays; the other penalties are given."""


def table_runtime(scale: Scale, context: Context) -> Section:
    """Training times beside the paper's."""
    import pandas as pd

    methods = _methods(scale)
    for make in methods.values():  # compile, and load what is loaded once
        _seconds(make(), *make_subspace(60, 8, 4, 2, random_state=0)[:2])
    rows: list[dict[str, Any]] = []
    for seed in context.seeds(_REPEATS):
        X, Y, _ = make_subspace(**scale.sizes, random_state=seed)
        for name, make in methods.items():
            rows.append({"method": name, "seed": seed, "seconds": _seconds(make(), X, Y)})
            context.progress(len(rows), _REPEATS * len(methods), name)
    data = pd.DataFrame(rows)
    settings = scale.symbols | {"data sets": _REPEATS, "seed": context.seed}
    return Section(
        "table-runtime",
        "Table 4: running time",
        _TEXT,
        tables=with_settings(settings, _table(data)),
        claims=_claims(data),
    )


def _methods(scale: Scale) -> dict[str, Callable[[], Any]]:
    rank = scale.rank
    return {
        "Least squares": LinearRegression,
        "LS + ℓ2": Ridge,
        "LS + ℓ1": lambda: Lasso(alpha=0.1),
        "Multi-trace": TraceNormBaseline,
        "Multi-ℓ2,1": lambda: MultiTaskLasso(alpha=0.1),
        _TOBIT: TobitRegressor,
        _PRINTED: lambda: printed_layer(scale, PUBLISHED["table-layers"], 0),
        _PRINTED_NETWORK: lambda: PrintedNetwork(
            rank, _LAYERS, PUBLISHED["table-layers"], scale.sigma
        ),
        _ONLINE: lambda: SubspaceTobitRegressor(rank, solver="online"),
        _NETWORK: lambda: SubspaceNetworkRegressor(
            rank, _LAYERS, solver="online", prune_layers=False
        ),
        _BATCH: lambda: SubspaceTobitRegressor(rank, solver="batch"),
        _DEEP: MLPBaseline,
    }


def _seconds(model: Any, X: FloatArray, Y: FloatArray) -> float:
    own = isinstance(model, Baseline | PrintedNetwork)
    outcomes = CensoredTargets.from_bounds(Y, 0.0) if own else Y
    started = perf_counter()
    model.fit(X, outcomes)
    return perf_counter() - started


def _table(data: pd.DataFrame) -> TableOf:
    import pandas as pd

    rows = []
    for name in dict.fromkeys(data["method"]):
        layers = _LAYERS if name in _DEEPER else 1
        seconds = data.loc[data["method"] == name, "seconds"].to_numpy()
        rows.append(
            {
                "method": name,
                "seconds": mean_and_sd(seconds, 3),
                "seconds per layer": mean_and_sd(seconds / layers, 3) if "SN" in name else "",
                "paper's seconds": f"{PAPER[name]:g}" if name in PAPER else "",
            }
        )
    caption = "Table 4 again (the paper's values are for N = 5000, D = 200, T = 100)"
    return TableOf(caption, pd.DataFrame(rows), data)


def _claims(data: pd.DataFrame) -> tuple[Claim, ...]:
    seconds = data.pivot(index="seed", columns="method", values="seconds")
    return (
        _faster(seconds, _PRINTED, _TOBIT, "Table 4: 109 s against 1680 s"),
        _faster(seconds, _ONLINE, _TOBIT, "Table 4: 109 s against 1680 s"),
        _faster(seconds, _PRINTED_NETWORK, _DEEP, "Table 4: 327 s against 659 s"),
        _faster(seconds, _NETWORK, _DEEP, "Table 4: 327 s against 659 s"),
        _faster(seconds, _ONLINE, _PRINTED, "not compared", by="us"),
        _faster(seconds, _ONLINE, _BATCH, "not compared", by="us"),
    )


def _faster(
    seconds: pd.DataFrame, first: str, second: str, paper: str, by: Claimant = "the paper"
) -> Claim:
    ratios = np.log(seconds[second].to_numpy() / seconds[first].to_numpy())
    return claim_over_repeats(
        f"{first} is faster than {second}.",
        ratios,
        "log of the ratio of seconds",
        paper=paper,
        ours=f"{np.exp(ratios.mean()):.3g} times as fast",
        by=by,
    )
