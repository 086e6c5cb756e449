"""The methods of the paper's comparisons, beside the Subspace Network."""

from __future__ import annotations

from deeptobit.baselines import (
    DeepBaseline,
    GroupLassoBaseline,
    LassoBaseline,
    LeastSquaresBaseline,
    RidgeBaseline,
    TobitBaseline,
    TraceNormBaseline,
)
from deeptobit.experiments.reproduce._context import Context
from deeptobit.experiments.reproduce._method import Method, reading

CENSORED_AND_TWIN = (
    ("least squares, clipped", "least squares"),
    ("ridge, clipped", "ridge"),
    ("lasso, clipped", "lasso"),
    ("Multi Trace, clipped", "Multi Trace"),
    ("Multi Trace, censored", "Multi Trace, clipped"),
    ("Multi ℓ2,1, clipped", "Multi ℓ2,1"),
    ("Multi ℓ2,1, censored", "Multi ℓ2,1, clipped"),
    ("DNN ii", "DNN i"),
)


def shallow_methods(*, uncensored: bool) -> dict[str, Method]:
    """Least squares, ridge, lasso, trace norm and ℓ2,1 norm, and the Tobit model.

    Squared losses are read as they are, if ``uncensored``, and clipped to the bounds, which the
    paper calls censored; both norms are there in the censored likelihood as well.
    """
    squared = {
        "least squares": LeastSquaresBaseline(),
        "ridge": RidgeBaseline(),
        "lasso": LassoBaseline(),
        "Multi Trace": TraceNormBaseline(),
        "Multi ℓ2,1": GroupLassoBaseline(),
    }
    likelihoods = {
        "Multi Trace, censored": TraceNormBaseline(censored=True),
        "Multi ℓ2,1, censored": GroupLassoBaseline(censored=True),
        "Tobit": TobitBaseline(),
    }
    methods = {}
    for name, model in squared.items():
        rows = {name: reading("latent")} if uncensored else {}
        methods[name] = Method((model,), {**rows, f"{name}, clipped": reading("clip")})
    return methods | {
        name: Method((model,), {name: reading("clip")}) for name, model in likelihoods.items()
    }


def deep_methods(rank: int, context: Context) -> dict[str, Method]:
    """Networks trained by back-propagation: plain, with clipped outputs, and of low rank too."""
    plain, clipped = (DeepBaseline(kind, random_state=context.seed) for kind in ("i", "ii"))
    return {
        "DNN i": Method((plain,), {"DNN i": reading("latent")}),
        "DNN ii": Method((clipped,), {"DNN ii": reading("clip")}),
        "DNN iii": dnn_iii(rank, "DNN iii", context),
    }


def dnn_iii(rank: int, row: str, context: Context) -> Method:
    """The network that is factorised and trained again."""
    model = DeepBaseline("iii", rank=rank, random_state=context.seed)
    return Method((model,), {row: reading("clip")})
