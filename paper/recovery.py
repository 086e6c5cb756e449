"""Table 1 of the paper: the subspaces of three layers, and what can be known of them."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deeptobit import CensoredTargets, SubspaceNetworkRegressor
from deeptobit.datasets import make_subspace
from deeptobit.exceptions import CensoringWarning
from deeptobit.metrics import principal_angles
from paper.arrays import FloatArray
from paper.baselines import MLPBaseline
from paper.recipes import (
    CHOSEN,
    OURS,
    PRINTED,
    PUBLISHED,
    ROWS,
    Constants,
    PrintedNetwork,
    best_constants,
)
from paper.section import Claim, Context, Scale, Section, TableOf, with_settings
from paper.theory import claim_unless_diverged, most_often, told
from paper.verdicts import claim_over_repeats, over_repeats

if TYPE_CHECKING:
    import pandas as pd


# How close a learned subspace is to the true one, and how close a random one is.

_DRAWS = 1000


class Recovery(NamedTuple):
    """The paper's three measures, and the ones that are invariant under U → UA.

    Parameters
    ----------
    difference : float
        ‖U − Û‖_F/(T·R), without alignment: what the authors' script computes.
    maximum, mean : float
        Over the T rows, of the absolute correlation of matching rows of U and Û: what the authors'
        script calls mutual coherence.
    smallest_cosine, mean_cosine : float
        Of the principal angles.
    """

    difference: float
    maximum: float
    mean: float
    smallest_cosine: float
    mean_cosine: float


def compare(U: FloatArray, learned: FloatArray) -> Recovery:
    """Measure a learned subspace; one of zeros has no correlation and no cosine.

    Examples
    --------
    >>> U = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [3.0, 1.0, 0.0], [1.0, 5.0, 1.0]])
    >>> [round(value, 2) for value in compare(U, 2.0 * U)]
    [0.55, 1.0, 1.0, 1.0, 1.0]
    >>> [round(value, 2) for value in compare(U, 0.0 * U)]
    [0.55, 0.0, 0.0, 0.0, 0.0]
    """
    difference = float(np.linalg.norm(U - learned)) / U.size
    if not (np.isfinite(learned).all() and learned.any()):
        return Recovery(difference, 0.0, 0.0, 0.0, 0.0)
    correlations = np.abs(_correlations(U, learned))
    cosines = np.cos(principal_angles(U, learned))
    return Recovery(
        difference,
        float(correlations.max()),
        float(correlations.mean()),
        float(cosines.min()),
        float(cosines.mean()),
    )


def _correlations(U: FloatArray, learned: FloatArray) -> FloatArray:
    """Of matching rows; 0 where a row is constant."""
    first, second = (part - part.mean(axis=1, keepdims=True) for part in (U, learned))
    sizes = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.asarray((first * second).sum(axis=1) / np.where(sizes > 0.0, sizes, 1.0))


class Chance(NamedTuple):
    """Of pairs of independent Gaussian matrices: means, and limits that hold 95 % of them."""

    mean: Recovery
    low: Recovery
    high: Recovery


def chance(n_tasks: int, rank: int, seed: int) -> Chance:
    """What the measures are where nothing is recovered.

    Examples
    --------
    >>> level = chance(100, 10, seed=0)
    >>> [round(value, 2) for value in level.mean]
    [0.04, 0.79, 0.27, 0.02, 0.27]
    """
    rng = np.random.default_rng(seed)
    pairs = rng.standard_normal((_DRAWS, 2, n_tasks, rank))
    found = np.array([compare(U, learned) for U, learned in pairs])
    low, high = np.quantile(found, [0.025, 0.975], axis=0)
    return Chance(*(Recovery(*values.tolist()) for values in (found.mean(axis=0), low, high)))


# What the paper says of its Table 1, tested.

N_LAYERS = 3
MLP = ("f-MLP", "rf-MLP")
# Table 1 of the paper by layer and method: subspace difference, maximum and mean coherence.
PAPER = {
    (1, "SN"): (0.0313, 0.7608, 0.2900),
    (1, "f-MLP"): (0.0315, 0.7727, 0.2725),
    (1, "rf-MLP"): (0.0317, 0.7895, 0.2735),
    (2, "SN"): (0.0321, 0.8283, 0.2882),
    (2, "f-MLP"): (0.0321, 0.7603, 0.2820),
    (2, "rf-MLP"): (0.0321, 0.7654, 0.2829),
    (3, "SN"): (0.0312, 0.8493, 0.2586),
    (3, "f-MLP"): (0.0315, 0.7233, 0.2506),
    (3, "rf-MLP"): (0.0313, 0.7890, 0.2485),
}
_PAPER_TASKS, _PAPER_RANK = 100, 10
_MEASURES = {
    "mean": ("mean mutual coherence", 1.0, "0.28 against 0.27 and 0.27, mean of the layers"),
    "maximum": ("maximum mutual coherence", 1.0, "0.81 against 0.75 and 0.78, mean of the layers"),
    "difference": ("subspace difference", -1.0, "0.0315 against 0.0317 and 0.0317"),
}
_FOUND = 0.99  # smallest principal cosine of a subspace that was found


def recovery_claims(deep: pd.DataFrame) -> tuple[Claim, ...]:
    """Whether each layer is found, and ahead of the other networks, in every row."""
    return tuple(
        claim
        for row in ROWS
        for claim in (
            *(_of_layer(deep, row, layer) for layer in range(1, N_LAYERS + 1)),
            *(_against(deep, row, measure) for measure in _MEASURES),
        )
    )


def _of_layer(deep: pd.DataFrame, row: str, layer: int) -> Claim:
    here = deep[(deep["layer"] == layer) & (deep["method"] == row)]
    cosines = here["smallest_cosine"].to_numpy()
    return claim_over_repeats(
        f"SN finds the subspace of layer {layer} of three.",
        cosines - _FOUND,
        f"smallest principal cosine − {_FOUND}",
        paper="Table 1: “significantly better aligned with the groundtruth”",
        ours=f"smallest principal cosine {cosines.mean():.3f}, mean "
        f"{here['mean_cosine'].mean():.3f}",
        row=row,
    )


def _against(deep: pd.DataFrame, row: str, measure: str) -> Claim:
    """SN against the better of the two others, averaged over layers, data set by data set."""
    name, sign, paper = _MEASURES[measure]
    table = deep.groupby(["seed", "method"])[measure].mean().unstack("method")
    better = (sign * table[list(MLP)]).max(axis=1)
    means = table[[row, *MLP]].mean()
    values = ", ".join(f"{n} {v:.4f}" for n, v in zip(("SN", *MLP), means, strict=True))
    return claim_unless_diverged(
        f"SN is ahead of f-MLP and rf-MLP in {name}.",
        (sign * table[row] - better).to_numpy(),
        "lead of SN over the better of the two, mean of the layers",
        paper=f"Table 1: {paper}",
        ours=f"{values}, mean of the layers",
        row=row,
    )


def chance_claim(level: Chance) -> Claim:
    """All coherences that the paper prints are those of independent matrices."""
    printed = np.array(list(PAPER.values()))[:, 1:]
    low, high = np.array(level.low[1:3]), np.array(level.high[1:3])
    inside = int(((low <= printed) & (printed <= high)).sum())
    return Claim(
        "The coherences in the paper's Table 1 are those of independent Gaussian matrices.",
        paper=f"maxima {printed[:, 0].min():.2f}–{printed[:, 0].max():.2f}, means "
        f"{printed[:, 1].min():.2f}–{printed[:, 1].max():.2f}",
        ours=f"95 % of independent pairs have maxima {low[0]:.2f}–{high[0]:.2f} and means "
        f"{low[1]:.2f}–{high[1]:.2f}",
        verdict="holds" if inside == printed.size else "does not hold",
        test=f"{inside} of {printed.size} values inside, {_DRAWS} pairs simulated",
        by="us",
    )


# The section.

_TEXT = """Data of three censored layers, and networks of three layers that learn from them: SN \
layer by layer in one pass each, the MLP by back-propagation, factorised (f-MLP) and trained \
again (rf-MLP).

The paper's measures: “subspace difference” is ‖U − Û‖/(T·R), without alignment. Gaussian U have \
‖U‖/(T·R) = 1/√(T·R), {zero:.4f} at the paper's sizes: that is the value of Û = 0. “Mutual \
coherence” is the absolute correlation of matching rows of U and Û, R numbers each; maximum and \
mean are over the T rows. Two independent Gaussian matrices of the paper's sizes have a maximum of \
{maximum} and a mean of {mean} (95 % in brackets). All 18 coherences in the paper's Table 1 lie in \
these intervals, and its differences are 0.0312–0.0321: it shows chance, for every method and \
layer. Both measures depend on coordinates, and can be at chance where the span is found. \
“Recovered” means small principal angles; their cosines are shown beside.

Data: layer k + 1 sees [f; x]. Features are as drawn. The scores of every layer are scaled to the \
standard deviation √R that inputs of length 1 give, and U is compared with entries of variance 1. \
Without this scaling outcomes have a standard deviation of {spread:,.0f}, and the printed \
algorithm with the published constants {diverged}. Ours and the MLP standardise by themselves.

As printed, the first layer starts at the rank-R factors of least squares, the others at the layer \
below with steps divided by 1000 and by 100 more; λ = {alpha:g} and η = μ = {step:g} as published, \
or both chosen for the first layer on a fifth of the rows that is held out: {chosen}. Ours keeps \
every layer that was grown.

U₁ and U₂ cannot be recovered. SN learns every layer from the outcomes, whose scores lie in the \
span of U₃, so that its first layer estimates U₃ and not U₁ (ours: mean principal cosine \
{last:.2f} with U₃, {first:.2f} with U₁; chance {chance:.2f}). Hidden units of an MLP are in no \
order, so that the rows of its U₁ belong to no task."""


class Job(NamedTuple):
    """One method on one data set."""

    method: str
    seed: int


def table_recovery(scale: Scale, context: Context) -> Section:
    """Every measure by layer and method, with its chance level."""
    import pandas as pd

    seeds = context.seeds(scale.repeats)
    jobs = [Job(method, seed) for seed in seeds for method in (*ROWS, *MLP)]
    rows = over_repeats(partial(_learn, scale), jobs, context, "networks")
    deep = pd.DataFrame([row for part in rows for row in part])
    level = chance(scale.n_tasks, scale.rank, context.seed)
    printed = chance(_PAPER_TASKS, _PAPER_RANK, context.seed)
    first = deep[(deep["layer"] == 1) & (deep["method"] == OURS)]
    published = PUBLISHED["table-recovery"]
    spread, diverged = _as_drawn(scale, seeds[0])
    text = _TEXT.format(
        zero=1.0 / np.sqrt(_PAPER_TASKS * _PAPER_RANK),
        maximum=_interval(printed, "maximum"),
        mean=_interval(printed, "mean"),
        spread=spread,
        diverged=diverged,
        alpha=published.alpha,
        step=published.step,
        chosen=most_often(deep.loc[deep["method"] == CHOSEN, "constants"][::N_LAYERS].tolist()),
        last=first["last_cosine"].mean(),
        first=first["mean_cosine"].mean(),
        chance=level.mean.mean_cosine,
    )
    settings = scale.symbols | {"data sets": scale.repeats, "seed": context.seed}
    return Section(
        "table-recovery",
        "Table 1: subspaces of three layers",
        text,
        tables=with_settings(settings | {"layers": N_LAYERS}, _table(deep, level, scale)),
        claims=(*recovery_claims(deep), chance_claim(printed)),
    )


def _as_drawn(scale: Scale, seed: int) -> tuple[float, str]:
    """Spread of outcomes that are not scaled, and what the printed network does with them."""
    X, Y, _ = _draw(scale, seed, latent_sd=None)
    network = _printed(scale, PUBLISHED["table-recovery"], seed).fit(X, _outcomes(Y))
    where = network.diverged_.split(", pass")[0]
    return float(Y.std()), f"fails ({where})" if where else "does not diverge"


def _draw(scale: Scale, seed: int, latent_sd: float | None) -> tuple[FloatArray, FloatArray, Any]:
    return make_subspace(
        **scale.sizes,
        n_layers=N_LAYERS,
        skip_connection=True,
        latent_sd=latent_sd,
        random_state=seed,
    )


def _outcomes(Y: FloatArray) -> CensoredTargets:
    return CensoredTargets.from_bounds(Y, 0.0)


def _printed(
    scale: Scale, constants: Constants, seed: int, n_layers: int = N_LAYERS
) -> PrintedNetwork:
    return PrintedNetwork(scale.rank, n_layers, constants, scale.sigma, seed=seed)


def _learn(scale: Scale, job: Job) -> list[dict[str, Any]]:
    X, Y, truth = _draw(scale, job.seed, latent_sd=float(np.sqrt(scale.rank)))
    with warnings.catch_warnings():
        # Three layers may leave tasks censored throughout, for every method alike.
        warnings.simplefilter("ignore", CensoringWarning)
        learned, constants = _subspaces(scale, job, X, Y)
    true = [layer.U * (np.sqrt(layer.U.size) / np.linalg.norm(layer.U)) for layer in truth.layers]
    rows = []
    for number, (U, found) in enumerate(zip(true, learned, strict=True), start=1):
        last = {"last_cosine": compare(true[-1], found).mean_cosine, "constants": constants}
        rows.append({**job._asdict(), "layer": number, **compare(U, found)._asdict(), **last})
    return rows


def _subspaces(
    scale: Scale, job: Job, X: FloatArray, Y: FloatArray
) -> tuple[list[FloatArray], str]:
    """Learned U of every layer, and the constants of the printed algorithm."""
    if job.method == OURS:
        network = SubspaceNetworkRegressor(
            scale.rank, N_LAYERS, solver="online", joint_tuning=False, prune_layers=False
        )
        return [layer.U for layer in network.fit(X, Y).layers_], "none"
    if job.method in ROWS:
        constants = PUBLISHED["table-recovery"]
        if job.method == CHOSEN:
            first = partial(_printed, scale, seed=job.seed, n_layers=1)
            constants = best_constants(first, X, Y, scale.sigma, "least squares")
        words = f"λ = {constants.alpha:g}, η = {constants.step:g}"
        printed = _printed(scale, constants, job.seed).fit(X, _outcomes(Y))
        if printed.diverged_:
            return [np.full((Y.shape[1], scale.rank), np.inf)] * N_LAYERS, words
        return [layer.U for layer in printed.network_.layers_], words
    model = MLPBaseline(
        scale.rank, retrain=job.method == "rf-MLP", n_layers=N_LAYERS, random_state=job.seed
    )
    model.fit(X, _outcomes(Y))
    *hidden, last = (U for U, _ in model.layers_)
    spread = Y.std(axis=0)
    return [*hidden, np.where(spread > 0.0, spread, 1.0)[:, None] * last], "none"


_COLUMNS = {
    "difference": ("‖U − Û‖/(T·R)", 4, 0),
    "maximum": ("max. coherence", 3, 1),
    "mean": ("mean coherence", 3, 2),
    "smallest_cosine": ("smallest principal cosine", 3, None),
    "mean_cosine": ("mean principal cosine", 3, None),
    "last_cosine": ("mean cosine with U₃", 3, None),
}


def _table(deep: pd.DataFrame, level: Chance, scale: Scale) -> TableOf:
    import pandas as pd

    rows: list[dict[str, str]] = []
    for layer in range(1, N_LAYERS + 1):
        for method in (*ROWS, *MLP):
            here = deep[(deep["layer"] == layer) & (deep["method"] == method)]
            paper = PAPER.get((layer, "SN" if method == PRINTED else method))
            row = {"layer": str(layer), "method": f"SN, {method}" if method in ROWS else method}
            for name, (title, digits, number) in _COLUMNS.items():
                row[title] = told(here[name], digits)
                if number is not None:
                    row[f"{title}, paper"] = f"{paper[number]:.4f}" if paper else ""
            rows.append(row)
    zero = {"layer": "no recovery", "method": "Û = 0"}
    unrelated = {"layer": "no recovery", "method": "independent Û"}
    zero[_COLUMNS["difference"][0]] = f"{1.0 / np.sqrt(scale.n_tasks * scale.rank):.4f}"
    for name in Recovery._fields:
        unrelated[_COLUMNS[name][0]] = _interval(level, name, _COLUMNS[name][1])
    caption = (
        "Table 1 again: mean (standard deviation) over data sets. The last two rows are what "
        "U without any recovery has; brackets hold 95 % of independent Gaussian matrices."
    )
    return TableOf(caption, pd.DataFrame([*rows, zero, unrelated]).fillna(""), deep)


def _interval(level: Chance, name: str, digits: int = 3) -> str:
    mean, low, high = (getattr(part, name) for part in level)
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
