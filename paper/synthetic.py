"""Tables 2 and 3 of the paper: methods and depths on synthetic data."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from deeptobit import CensoredTargets, SubspaceNetworkRegressor
from deeptobit.app.study import EvaluationData
from deeptobit.datasets import SubspaceTruth, make_subspace
from paper.comparison import (
    claim_ahead,
    claims_by_row,
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
from paper.recipes import (
    CANDIDATES_IN_WORDS,
    CHOSEN,
    OURS,
    PRINTED,
    PUBLISHED,
    Constants,
    PrintedNetwork,
    PrintedPasses,
    as_printed,
    at_depth,
    grown,
)
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


# The algorithm as printed on these data: features and outcomes as drawn, and the true σ.


def _network(scale: Scale, n_layers: int, constants: Constants) -> PrintedNetwork:
    return PrintedNetwork(scale.rank, n_layers, constants, scale.sigma)


_AS_PRINTED = f"""“{PRINTED}”: one pass of Algorithm 1 over the rows per layer. Features and \
outcomes are as they are drawn; no intercept; the true σ; λ = 0.01; steps η = μ = 0.001, divided \
by 1000 in layer 2 and by 100 more above. The first layer starts at the rank-R factors of least \
squares, and every other one at the layer below. Nothing is undone.

“{CHOSEN}”: the same with {CANDIDATES_IN_WORDS}, chosen for every row of the table. “Diverged” \
says in how many splits numbers became infinite.

“{OURS}”: features and outcomes in standard units, intercepts, and σ learned."""


# ``table-synthetic``: Table 2 of the paper, with the oracle that it omits.

ORACLE = "the true U and V"
DEFAULTS, ONE_PASS = f"{OURS}, defaults", f"{OURS}, one pass"

_METHODS_TEXT = """Outcomes of {tasks} tasks are max(0, UVx + noise) of {features} features, with \
U, V and x Gaussian, rank {rank} and noise of standard deviation {sigma:.2g}; {rows} rows. The \
measure is the paper's ANMSE of the clipped prediction, so that the values compare with each \
other, and not with the paper's: its values are larger than those of the true parameters at the \
sizes it states. Order and ratios compare.

{how}

Rows called clipped are squared losses whose predictions are set to the bounds, which is what \
the paper calls censored; rows called censored maximise the censored likelihood.

{printed} One pass has steps of its own; our defaults go to the optimum. All networks know the \
rank.

{seconds}"""


def table_synthetic(scale: Scale, context: Context) -> Section:
    """All methods on the paper's synthetic data."""
    scale = like_the_paper(scale)
    data, truth = one_layer_data(scale, context)
    published = PUBLISHED["table-synthetic"]
    ours = SubspaceNetworkRegressor(scale.rank)
    one_pass = SubspaceNetworkRegressor(scale.rank, solver="online")
    methods = {
        ORACLE: Method((Oracle(truth),), {ORACLE: reading("clip")}),
        **shallow_methods(uncensored=True),
        **deep_methods(scale.rank, context),
        **as_printed(partial(_network, scale), published, (1, 3)),
        ONE_PASS: Method((one_pass,), {ONE_PASS: reading("clip")}),
        DEFAULTS: Method((ours,), {DEFAULTS: reading("clip")}),
    }
    results = compare_methods("table-synthetic", data, methods, scale, context)
    text = _METHODS_TEXT.format(
        tasks=scale.n_tasks,
        features=scale.n_features,
        rank=scale.rank,
        sigma=scale.sigma,
        rows=len(data.targets),
        how=how_compared(scale, context),
        printed=_AS_PRINTED,
        seconds=seconds_of_methods(results),
    )
    table = table_by_share(
        results,
        "ANMSE on synthetic data, mean (standard deviation) over splits, beside Table 2",
        paper={**SYNTHETIC, **{at_depth(PRINTED, n): SYNTHETIC_LAYERS[n] for n in (1, 3)}},
        reference=DEFAULTS,
        paper_reference=at_depth(PRINTED, 3),
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


def _method_claims(results: pd.DataFrame) -> tuple[Claim, ...]:
    rows = list(dict.fromkeys(results["row"]))
    others = [row for row in rows if not row.startswith((ORACLE, PRINTED, CHOSEN, OURS))]
    papers = [row for row in others if not row.endswith("censored")]
    three = {row: at_depth(row, 3) for row in (PRINTED, CHOSEN)} | {OURS: DEFAULTS}
    one = {row: at_depth(row, 1) for row in (PRINTED, CHOSEN)} | {OURS: ONE_PASS}
    return (
        *claims_by_row(
            results,
            lambda row: [(three[row], other) for other in papers],
            text="SN is ahead of every other method that the paper has.",
            paper="Table 2: SN of three layers, 0.0369 at 40 %, is ahead of all; next is its own "
            "first layer, 0.0390, then Tobit, 0.0428.",
        ),
        *claims_by_row(
            results,
            lambda row: [(one[row], "DNN iii")],
            margin=1.05,
            text="SN in one pass over the rows, with one layer, errs at most 1.05 times as much as "
            "DNN iii.",
            paper="Table 2: “comparable”, 0.0390 against 0.0431 at 40 %, 0.0390 against 0.0380 at "
            "80 %.",
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
        claim_ahead(
            results,
            [(DEFAULTS, ORACLE)],
            margin=1.05,
            text="Our defaults err at most 1.05 times as much as the true U and V.",
            paper="The paper does not state the oracle's error.",
            by="us",
        ),
        claim_ahead(
            results,
            [(DEFAULTS, other) for other in others],
            text="Our defaults are ahead of every other method, both norms in the censored "
            "likelihood among them.",
            paper="The paper has these norms in squared loss only.",
            by="us",
        ),
        claim_ahead(
            results,
            [(DEFAULTS, at_depth(row, n)) for row in (PRINTED, CHOSEN) for n in (1, 3)],
            text="Our defaults are ahead of the algorithm as printed, with either constants.",
            paper="The paper has nothing beside its own algorithm.",
            by="us",
        ),
        claim_ahead(
            results,
            [(ONE_PASS, "DNN iii")],
            text="Our one pass is ahead of DNN iii, trained by back-propagation.",
            paper="Table 2: 0.0369 against 0.0431 at 40 %, 0.0364 against 0.0380 at 80 %.",
            by="us",
        ),
    )


# ``table-layers``: Table 3 of the paper, and a truth on which depth does pay.

TRUE_LAYERS = "the true layers"
TUNED = f"{OURS}, tuned together"
DEPTHS = (1, 2, 3)
FALLING = "one layer as printed, three passes, steps η, η/10, η/100"
PASSES = {
    "one layer as printed, three passes with those steps": (1.0, 1e-3, 1e-5),
    FALLING: (1.0, 0.1, 0.01),
}

_LAYERS_TEXT = """The first table is the paper's setting: the truth is one layer, and networks \
grow to each depth.

{printed} Each layer goes to its optimum, and all are kept. Best constants and ours have up to \
{most} layers: those above repeat the third.

Is it depth that helps? A further layer is also a further pass over the rows. Two rows therefore \
have one layer with the published constants that passes over the rows three times, each pass from \
where the last one ended: with the steps of the three layers, and with steps that fall by 10. What \
they gain is convergence, and no benefit of depth.

The second table has a truth of two layers, on which depth can help (40 features, 20 tasks, \
rank 3, noise of standard deviation 1 around scores of 3, hidden layer without noise; networks \
of rank 6): as printed, by growth alone, and when all layers are tuned together, which the paper \
names as missing.

{how}"""


def table_layers(scale: Scale, context: Context) -> Section:
    """Networks of several depths, on a truth of one layer and on one of two."""
    one_layer, of_one = _on_one_layer(like_the_paper(scale), context)
    two_layers, of_two = _on_two_layers(scale, context)
    tables = with_settings(
        of_one,
        table_by_share(
            one_layer,
            "ANMSE on a truth of one layer, by depth, beside Table 3",
            paper={at_depth(PRINTED, n): SYNTHETIC_LAYERS[n] for n in scale.layers},
            reference=TRUE_LAYERS,
            paper_reference=at_depth(PRINTED, scale.layers[0]),
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
        _LAYERS_TEXT.format(printed=_AS_PRINTED, most=DEPTHS[-1], how=how_compared(scale, context)),
        tables=tables,
        claims=(*_one_layer_claims(one_layer, scale.layers), *_two_layer_claims(two_layers)),
    )


def _on_one_layer(scale: Scale, context: Context) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Results, and their settings."""
    data, truth = one_layer_data(scale, context)
    published, network = PUBLISHED["table-layers"], partial(_network, scale)
    few = _tuned_depths(scale.layers)
    methods = {
        TRUE_LAYERS: Method((Oracle(truth),), {TRUE_LAYERS: reading("clip")}),
        PRINTED: as_printed(network, published, scale.layers)[PRINTED],
        CHOSEN: as_printed(network, published, few)[CHOSEN],
        OURS: grown([SubspaceNetworkRegressor(scale.rank)], {n: at_depth(OURS, n) for n in few}),
    }
    for row, shares in PASSES.items():
        steps = tuple(published.step * share for share in shares)
        passes = PrintedPasses(scale.rank, published, scale.sigma, steps)
        methods[row] = Method((passes,), {row: reading("clip")})
    results = compare_methods("table-layers, one layer", data, methods, scale, context)
    return results, split_settings(data, scale, context, R=scale.rank, σ=scale.sigma)


def _tuned_depths(layers: tuple[int, ...]) -> tuple[int, ...]:
    """Depths at which choosing constants takes minutes, and not hours."""
    return tuple(n for n in layers if n <= DEPTHS[-1])


def _on_two_layers(scale: Scale, context: Context) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Results, and their settings."""
    two = replace(scale, n_samples=min(2000, scale.n_samples), rank=6, sigma=1.0)
    X, Y, truth = make_subspace(
        two.n_samples,
        40,
        20,
        3,
        n_layers=2,
        skip_connection=True,
        sigma=two.sigma,
        hidden_sigma=0.0,
        latent_sd=3.0,
        random_state=context.seed,
    )
    data = EvaluationData("two layers", X, CensoredTargets.from_bounds(Y, 0.0))
    methods = {
        TRUE_LAYERS: Method((Oracle(truth),), {TRUE_LAYERS: reading("clip")}),
        **as_printed(partial(_network, two), PUBLISHED["table-layers"], DEPTHS),
        OURS: grown([SubspaceNetworkRegressor(two.rank)], {n: at_depth(OURS, n) for n in DEPTHS}),
    }
    for n in DEPTHS[1:]:
        network = SubspaceNetworkRegressor(two.rank, n, joint_tuning=True)
        methods[at_depth(TUNED, n)] = Method((network,), {at_depth(TUNED, n): reading("clip")})
    results = compare_methods("table-layers, two layers", data, methods, scale, context)
    return results, split_settings(data, scale, context, R=two.rank, σ=two.sigma)


def _one_layer_claims(results: pd.DataFrame, layers: tuple[int, ...]) -> tuple[Claim, ...]:
    few = _tuned_depths(layers)
    return (
        *claims_by_row(
            results,
            lambda row: [(at_depth(row, few[-1]), at_depth(row, 1))],
            text=f"On a truth of one layer, {few[-1]} layers are ahead of one.",
            paper="Table 3: from 0.0390 to 0.0369 at 40 %, 0.0390 to 0.0364 at 80 %.",
        ),
        *([_plateau(results)] if {10, 20} <= set(layers) else []),
        claim_ahead(
            results,
            [(FALLING, at_depth(PRINTED, layers[-1]))],
            text=f"What depth gains as printed, passes gain as well: one layer with three passes "
            f"and falling steps is ahead of {layers[-1]} layers.",
            paper="The paper does not compare depth with further passes.",
            by="us",
        ),
        claim_ahead(
            results,
            [(at_depth(OURS, 1), at_depth(PRINTED, n)) for n in layers]
            + [(at_depth(OURS, 1), at_depth(CHOSEN, n)) for n in few],
            text="One layer of ours, at its optimum, is ahead of every depth as printed.",
            paper="The paper has no layer that went to its optimum.",
            by="us",
        ),
    )


def _plateau(results: pd.DataFrame) -> Claim:
    ten, twenty = at_depth(PRINTED, 10), at_depth(PRINTED, 20)
    return claim_ahead(
        results,
        [(ten, twenty), (twenty, ten)],
        margin=1.01,
        text="From 10 to 20 layers the error changes by less than 1 %.",
        paper="Table 3: a plateau, 0.0368 and 0.0368 at 40 %, 0.0363 and 0.0363 at 80 %.",
        row=PRINTED,
    )


def _two_layer_claims(results: pd.DataFrame) -> tuple[Claim, ...]:
    two = {row: at_depth(row, 2) for row in (PRINTED, CHOSEN)} | {OURS: at_depth(TUNED, 2)}
    return (
        *claims_by_row(
            results,
            lambda row: [(two[row], at_depth(row, 1))],
            text="On a truth of two layers, two layers are ahead of one.",
            paper="Section 3: SN “is expected to achieve superior performance due to the higher "
            "learning capacity”; it does not tune layers together, as ours does.",
        ),
        claim_ahead(
            results,
            [(at_depth(TUNED, 2), at_depth(OURS, 2))],
            text="Tuning two layers together is ahead of growing them.",
            paper="The paper does not tune layers together, and names it as missing.",
            by="us",
        ),
    )
