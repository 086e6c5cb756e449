"""Tables 2 and 3 of the paper: methods and depths on synthetic data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from deeptobit import CensoredTargets, SubspaceNetworkRegressor
from deeptobit.app.study import EvaluationData
from deeptobit.datasets import SubspaceTruth, make_subspace
from paper.comparison import (
    claim_ahead,
    compare_methods,
    how_compared,
    seconds_of_methods,
    split_settings,
    table_by_share,
)
from paper.methods import (
    CENSORED_AND_TWIN,
    Method,
    Oracle,
    deep_methods,
    reading,
    shallow_methods,
)
from paper.recipes import grown, recipe
from paper.section import Claim, Context, Scale, Section, with_settings
from paper.values import SYNTHETIC, SYNTHETIC_LAYERS

if TYPE_CHECKING:
    import pandas as pd


def like_the_paper(scale: Scale) -> Scale:
    """The scale with the paper's number of entries per parameter, and its ratio of signal to noise.

    These decide who is ahead of whom: N T / (R (D + T)) = 500/3, and σ² / (R D) = 9/2000.

    Examples
    --------
    >>> from paper.section import PAPER, SMALL
    >>> like_the_paper(PAPER) == PAPER
    True
    >>> small = like_the_paper(SMALL)
    >>> small.n_samples, round(small.sigma, 2)
    (1500, 0.73)
    """
    n_parameters = scale.rank * (scale.n_features + scale.n_tasks)
    n_samples = round(500 * n_parameters / (3 * scale.n_tasks))
    sigma = 3.0 * (scale.rank * scale.n_features / 2000) ** 0.5
    return replace(scale, n_samples=n_samples, sigma=sigma)


def one_layer_data(scale: Scale, context: Context) -> tuple[EvaluationData, SubspaceTruth]:
    """One layer of Gaussian X, U and V, as in the paper; its splits are of one data set."""
    X, Y, truth = make_subspace(**scale.sizes, random_state=context.seed)
    return EvaluationData("one layer", X, CensoredTargets.from_bounds(Y, 0.0)), truth


# ``table-synthetic``: Table 2 of the paper, with the oracle that it omits.

ORACLE, OURS, ONE_PASS = "the true U and V", "SN, our defaults", "SN, one pass"
RECIPE = {1: "SN, the paper's recipe, layer 1", 3: "SN, the paper's recipe, layer 3"}

_METHODS_TEXT = """Outcomes of {tasks} tasks are max(0, UVx + noise) of {features} features, with \
U, V and x Gaussian, rank {rank} and noise of standard deviation {sigma:.2g}; {rows} rows. The \
measure is the paper's ANMSE of the clipped prediction, so that the values compare with each \
other, and not with the paper's: its values are larger than those of the true parameters at the \
sizes it states. Order and ratios compare.

{how}

Rows called clipped are squared losses whose predictions are set to the bounds, which is what \
the paper calls censored; rows called censored maximise the censored likelihood. The paper's \
recipe is one pass over the rows per layer with a constant step, without intercepts and with \
the true σ; one pass is ours, with steps of its own; our defaults go to the optimum. All \
networks know the rank.

{seconds}"""


def table_synthetic(scale: Scale, context: Context) -> Section:
    """All methods on the paper's synthetic data."""
    scale = like_the_paper(scale)
    data, truth = one_layer_data(scale, context)
    methods = {
        ORACLE: Method((Oracle(truth),), {ORACLE: reading("clip")}),
        **shallow_methods(uncensored=True),
        **deep_methods(scale.rank, context),
        "SN, the paper's recipe": recipe(scale, context, RECIPE),
        ONE_PASS: _network(scale, ONE_PASS, solver="online"),
        OURS: _network(scale, OURS),
    }
    results = compare_methods("table-synthetic", data, methods, scale, context)
    text = _METHODS_TEXT.format(
        tasks=scale.n_tasks,
        features=scale.n_features,
        rank=scale.rank,
        sigma=scale.sigma,
        rows=len(data.targets),
        how=how_compared(scale, context),
        seconds=seconds_of_methods(results),
    )
    table = table_by_share(
        results,
        "ANMSE on synthetic data, mean (standard deviation) over splits, beside Table 2",
        paper=SYNTHETIC,
        reference=OURS,
        paper_reference=RECIPE[3],
    )
    oracle = table_by_share(
        results, "The same, over the error of the true U and V", paper={}, reference=ORACLE
    )
    settings = split_settings(data, scale, context, R=scale.rank, σ=scale.sigma)
    return Section(
        "table-synthetic",
        "Methods on synthetic data",
        text,
        tables=with_settings(settings, table, oracle),
        claims=_method_claims(results),
    )


def _network(scale: Scale, row: str, solver: Literal["auto", "online"] = "auto") -> Method:
    network = SubspaceNetworkRegressor(scale.rank, solver=solver)
    return Method((network,), {row: reading("clip")})


def _method_claims(results: pd.DataFrame) -> tuple[Claim, ...]:
    others = [row for row in dict.fromkeys(results["row"]) if row not in (OURS, ORACLE)]
    return (
        claim_ahead(
            results,
            [(OURS, ORACLE)],
            margin=1.05,
            text="SN with our defaults errs at most 1.05 times as much as the true U and V.",
            paper="The paper does not state the oracle's error.",
        ),
        claim_ahead(
            results,
            [(OURS, other) for other in others],
            text="SN with our defaults is ahead of every other row.",
            paper="Table 2: SN of three layers, 0.0369 at 40 %, is ahead of all; next is its own "
            "first layer, 0.0390, then Tobit, 0.0428.",
        ),
        claim_ahead(
            results,
            CENSORED_AND_TWIN,
            text="Every censored method is ahead of its uncensored twin.",
            paper="Table 2: lasso 0.1127 against 0.1412, Multi Trace 0.1053 against 0.1333, DNN "
            "0.0489 against 0.0623 at 40 %.",
        ),
        claim_ahead(
            results,
            [(ONE_PASS, "DNN iii")],
            text="SN in one pass over the rows is ahead of DNN iii, trained by back-propagation.",
            paper="Table 2: 0.0369 against 0.0431 at 40 %, 0.0364 against 0.0380 at 80 %.",
        ),
        claim_ahead(
            results,
            [(RECIPE[3], "DNN iii")],
            text="SN by the paper's recipe is ahead of DNN iii.",
            paper="Table 2: 0.0369 against 0.0431 at 40 %, 0.0364 against 0.0380 at 80 %.",
        ),
        claim_ahead(
            results,
            [("Multi Trace, clipped", "lasso, clipped"), ("DNN iii", "DNN i")],
            text="Structure shared by the tasks helps: Multi Trace and DNN iii are ahead of lasso "
            "and DNN i.",
            paper="Table 2: 0.1053 against 0.1127 and 0.0431 against 0.0623 at 40 %.",
        ),
        claim_ahead(
            results,
            [("Tobit", "Multi Trace, clipped")],
            text="The likelihood matters more than the structure: Tobit, task by task, is ahead of "
            "the clipped Multi Trace.",
            paper="Table 2: 0.0428 against 0.1053 at 40 %.",
        ),
    )


# ``table-layers``: Table 3 of the paper, and a truth on which depth does pay.

TRUE_LAYERS = "the true layers"
TUNED_DEPTHS = (1, 2, 3)

_LAYERS_TEXT = """The first table is the paper's setting: the truth is one layer, and networks \
grow to each depth. By the paper's recipe, one pass with a constant step, the first layer is not \
finished, and a further layer is a further pass over the rows. Beside it each layer goes to its \
optimum, which leaves nothing but noise for depth to gain on this truth: where the recipe \
improves with depth and the optimum does not, the improvement is convergence, and no benefit of \
depth. A layer is kept where it gains more log likelihood than it has parameters; otherwise the \
network stays the shallower one.

The second table has a truth of two layers, on which depth can help (40 features, 20 tasks, \
rank 3, noise of standard deviation 1 around scores of 3, hidden layer without noise; networks \
of rank 6): by growth alone, and when all layers are tuned together, which the paper names as \
missing.

{how}"""


def table_layers(scale: Scale, context: Context) -> Section:
    """Networks of several depths, on a truth of one layer and on one of two."""
    one_layer, of_one = _on_one_layer(like_the_paper(scale), context)
    two_layers, of_two = _on_two_layers(scale, context)
    first, last = scale.layers[0], scale.layers[-1]
    tables = with_settings(
        of_one,
        table_by_share(
            one_layer,
            "ANMSE on a truth of one layer, by depth, beside Table 3",
            paper={_recipe(depth): SYNTHETIC_LAYERS[depth] for depth in scale.layers},
            reference=TRUE_LAYERS,
            paper_reference=_recipe(first),
        ),
    ) + with_settings(
        of_two,
        table_by_share(
            two_layers,
            "ANMSE on a truth of two layers, by depth",
            paper={},
            reference=TRUE_LAYERS,
        ),
    )
    return Section(
        "table-layers",
        "Depth on synthetic data",
        _LAYERS_TEXT.format(how=how_compared(scale, context)),
        tables=tables,
        claims=(*_one_layer_claims(one_layer, first, last), *_two_layer_claims(two_layers)),
    )


def _recipe(depth: int) -> str:
    return f"the paper's recipe, {_layers(depth)}"


def _converged(depth: int) -> str:
    return f"each layer to its optimum, {_layers(depth)}"


def _tuned(depth: int) -> str:
    return f"our defaults (tuned together), {_layers(depth)}"


def _layers(depth: int) -> str:
    return f"{depth} layer" if depth == 1 else f"{depth} layers"


def _on_one_layer(scale: Scale, context: Context) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Results, and their settings."""
    data, truth = one_layer_data(scale, context)
    network = SubspaceNetworkRegressor(scale.rank, joint_tuning=False)
    methods = {
        TRUE_LAYERS: Method((Oracle(truth),), {TRUE_LAYERS: reading("clip")}),
        "the paper's recipe": recipe(
            scale, context, {depth: _recipe(depth) for depth in scale.layers}
        ),
        "each layer to its optimum": grown(
            [network], {depth: _converged(depth) for depth in scale.layers}
        ),
    }
    results = compare_methods("table-layers, one layer", data, methods, scale, context)
    return results, split_settings(data, scale, context, R=scale.rank, σ=scale.sigma)


def _on_two_layers(scale: Scale, context: Context) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Results, and their settings."""
    n_samples, rank, sigma = min(2000, scale.n_samples), 6, 1.0
    X, Y, truth = make_subspace(
        n_samples,
        40,
        20,
        3,
        n_layers=2,
        skip_connection=True,
        sigma=sigma,
        hidden_sigma=0.0,
        latent_sd=3.0,
        random_state=context.seed,
    )
    data = EvaluationData("two layers", X, CensoredTargets.from_bounds(Y, 0.0))
    methods = {
        TRUE_LAYERS: Method((Oracle(truth),), {TRUE_LAYERS: reading("clip")}),
        "each layer to its optimum": grown(
            [SubspaceNetworkRegressor(rank, joint_tuning=False)],
            {depth: _converged(depth) for depth in TUNED_DEPTHS},
        ),
    }
    for depth in TUNED_DEPTHS[1:]:
        network = SubspaceNetworkRegressor(rank, depth)
        methods[_tuned(depth)] = Method((network,), {_tuned(depth): reading("clip")})
    results = compare_methods("table-layers, two layers", data, methods, scale, context)
    return results, split_settings(data, scale, context, R=rank, σ=sigma)


def _one_layer_claims(results: pd.DataFrame, first: int, last: int) -> tuple[Claim, ...]:
    return (
        claim_ahead(
            results,
            [(_recipe(last), _recipe(first))],
            text=f"By the paper's recipe, {last} layers are ahead of one on a truth of one layer.",
            paper="Table 3: from 0.0390 to 0.0368 at 40 %; most of it is there after three layers.",
        ),
        claim_ahead(
            results,
            [
                (_converged(last), _converged(first)),
                (_converged(first), _converged(last)),
            ],
            margin=1.01,
            text="Where each layer goes to its optimum, depth changes nothing on a truth of one "
            "layer: errors differ by less than 1 %.",
            paper="The paper has no layer that went to its optimum.",
        ),
        claim_ahead(
            results,
            [(_converged(first), _recipe(last))],
            text=f"One layer at its optimum is ahead of {last} by the paper's recipe.",
            paper="The paper has no layer that went to its optimum.",
        ),
    )


def _two_layer_claims(results: pd.DataFrame) -> tuple[Claim, ...]:
    one = _converged(1)
    return (
        claim_ahead(
            results,
            [(_tuned(depth), one) for depth in TUNED_DEPTHS[1:]],
            text="On a truth of two layers, networks that are tuned together are ahead of one "
            "layer.",
            paper="The paper does not tune layers together, and names it as missing.",
        ),
        claim_ahead(
            results,
            [(_tuned(2), _converged(2))],
            text="Tuning two layers together is ahead of growing them.",
            paper="The paper does not tune layers together, and names it as missing.",
        ),
    )
