"""Methods compared on the same random splits: results, tables, and claims about them."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from deeptobit.app.study import (
    EvaluationData,
    Job,
    Protocol,
    ResultStore,
    draw_splits,
    find_usable,
    inner_folds,
    open_results,
    run_jobs,
    versions,
)
from deeptobit.metrics import some_targets
from paper.methods import Choice, Method, Problem, assess
from paper.recipes import ROWS
from paper.section import Claim, Claimant, Context, Scale, TableOf, Verdict
from paper.values import PaperRow
from paper.verdicts import Judgement, p_in_words, verdict_over_repeats

if TYPE_CHECKING:
    import pandas as pd


_FOLDS = 5  # one of them validates: a fifth of the training rows


@dataclass(frozen=True, eq=False)
class Comparison:
    """Data, methods, and how the data are split.

    Parameters
    ----------
    name : str
        Of the section.
    data : EvaluationData
    methods : mapping of str to Method
    protocol : Protocol
        Shares, repeats and seed of the splits.
    choice : {"honest", "paper"}
        Which rows choose among the members of a grid: validation rows, or the test rows.
    """

    name: str
    data: EvaluationData
    methods: Mapping[str, Method]
    protocol: Protocol
    choice: Choice

    def settings(self) -> dict[str, dict[str, Any]]:
        """What must be the same for a run to be continued, beside the data."""
        return {
            "protocol": asdict(self.protocol) | {"choice": self.choice},
            "methods": {name: method.settings() for name, method in self.methods.items()},
        }


def compare(comparison: Comparison, context: Context) -> pd.DataFrame:
    """Fit every method to every split.

    Returns
    -------
    DataFrame
        One line per share, repeat and row of the table: ``anmse`` and ``centred_anmse`` on the test
        rows, ``settings`` of the chosen estimator with what it chose for itself, ``seconds`` and
        ``warnings`` of its method with the whole grid, ``seed`` and ``versions``. It does not
        depend on ``context.n_jobs``.
    """
    data, protocol = comparison.data, comparison.protocol
    jobs = []
    for split in draw_splits(len(data.targets), data.groups, protocol):
        groups = None if data.groups is None else data.groups[split.train]
        seed = protocol.seed + split.repeat
        folds = inner_folds(len(split.train), groups, _FOLDS, seed)[:1]
        tasks, _ = find_usable(data.targets, split, folds)
        jobs += [Job(name, split, folds, tasks) for name in comparison.methods]

    def tell(done: int, total: int, label: str) -> None:
        if done:
            label = label or "continued where it stopped"
            context.progress(done, total, f"{comparison.name}: {label}")

    store = _open(comparison, context)
    work = partial(_assess, comparison)
    return run_jobs(jobs, work, n_jobs=context.n_jobs, store=store, progress=tell)


def _open(comparison: Comparison, context: Context) -> ResultStore | None:
    """The folder of these settings and no others, so that scales may share a store."""
    parts, settings = context.folder(comparison.name), comparison.settings()
    if parts is None:
        return None
    text = json.dumps([settings, comparison.data.fingerprint()], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return open_results(parts / digest[:12], comparison.data, settings)


def _assess(comparison: Comparison, job: Job) -> pd.DataFrame:
    """One method on one split, a line for every row of the table."""
    import pandas as pd

    data, split = comparison.data, job.split
    ((to_fit, to_judge),) = job.folds
    problem = Problem(
        data.features(split.train),
        some_targets(data.targets, job.tasks),
        split.train,
        split.test,
        (split.train[to_fit], split.train[to_judge]),
    )
    started = perf_counter()
    # Warnings are counted: a hundred fits would repeat the same ones.
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcomes = assess(comparison.methods[job.method], problem, comparison.choice)
    seconds = perf_counter() - started
    rows = [
        {
            "share": split.share,
            "repeat": split.repeat,
            "method": job.method,
            "row": row,
            "anmse": outcome.anmse,
            "centred_anmse": outcome.centred_anmse,
            "n_train": len(split.train),
            "n_test": len(split.test),
            "n_tasks": len(job.tasks),
            "settings": outcome.choice,
            "seconds": seconds,
            "warnings": len(caught),
            "seed": comparison.protocol.seed,
            "versions": json.dumps(versions()),
        }
        for row, outcome in outcomes.items()
    ]
    return pd.DataFrame(rows)


# Tables of a comparison, the paper's values beside ours.

_NOTHING, _DIVERGED = "–", "diverged"


def table_by_share(
    results: pd.DataFrame,
    caption: str,
    *,
    paper: Mapping[str, PaperRow],
    reference: str,
    paper_reference: str | None = None,
    measure: str = "anmse",
) -> TableOf:
    """Rows in the order of ``results``, shares in columns: mean (standard deviation) over repeats.

    A method that diverged has no mean: its entry says in how many of the repeats.

    Parameters
    ----------
    results : DataFrame
        Of :func:`compare`.
    caption : str
    paper : mapping
        Its rows by the names of ours; empty for tables without any.
    reference : str
        The row that the others are divided by in the column of ratios: the mean over shares.
    paper_reference : str, optional
        The same for the paper's rows; ``reference`` by default.
    measure : {"anmse", "centred_anmse"}
    """
    import pandas as pd

    cells = results.groupby(["row", "share"], sort=False)[measure].agg(_entry)
    rows = list(dict.fromkeys(results["row"]))
    shares = list(dict.fromkeys(results["share"]))
    table: dict[str, list[str]] = {"method": rows}
    for share in shares:
        table[f"{share:.0%}"] = [cells[(row, share)] for row in rows]
        if paper:
            table[f"{share:.0%}, paper"] = [_paper_cell(paper.get(row), share) for row in rows]
    errors = results.pivot(index=["share", "repeat"], columns="row", values=measure)
    table[f"over {reference}"] = [_ratio(errors[row], errors[reference]) for row in rows]
    if paper:
        base = paper[paper_reference or reference]
        table[f"paper, over {paper_reference or reference}"] = [
            _paper_ratio(paper.get(row), base, shares) for row in rows
        ]
    return TableOf(caption, pd.DataFrame(table), results)


def seconds_of_methods(results: pd.DataFrame) -> str:
    """How long methods took, in a sentence."""
    each = results.drop_duplicates(["share", "repeat", "method"])
    mean = each.groupby("method", sort=False)["seconds"].mean()
    listed = ", ".join(f"{name} {seconds:.1f}" for name, seconds in mean.items())
    return f"Mean seconds of a method on one core, its whole grid included: {listed}."


def _ratio(errors: pd.Series[float], reference: pd.Series[float]) -> str:
    """Mean over shares of the ratio of mean errors, over the repeats that both rows have."""
    if np.isinf(errors).any():
        return _DIVERGED
    both = errors.notna() & reference.notna()
    means, references = (one[both].groupby("share").mean() for one in (errors, reference))
    return f"{(means / references).mean():.3f}"


def _entry(errors: pd.Series[float]) -> str:
    lost = int(np.isinf(errors).sum())
    if lost:
        return f"{_DIVERGED} in {lost} of {len(errors)}"
    return _cell(errors.mean(), errors.std())


def _cell(mean: float, spread: float) -> str:
    return f"{mean:.4f}" if np.isnan(spread) else f"{mean:.4f} ({spread:.4f})"


def _paper_cell(row: PaperRow | None, share: float) -> str:
    return _NOTHING if row is None or share not in row else _cell(*row[share])


def _paper_ratio(row: PaperRow | None, base: PaperRow, shares: Sequence[float]) -> str:
    stated = [share for share in shares if row is not None and share in row]
    if row is None or not stated:
        return _NOTHING
    return f"{np.mean([row[share][0] / base[share][0] for share in stated]):.3f}"


# Claims of the form "A is ahead of B at every split size", judged by one test.


class Compared(NamedTuple):
    """Two rows of a table at one share."""

    row: str
    other: str
    share: float
    repeats: int
    error: float
    other_error: float
    judgement: Judgement

    def __str__(self) -> str:
        """With the numbers."""
        numbers = (self.error, self.other_error)
        errors = " against ".join(f"{e:.4f}" if np.isfinite(e) else _DIVERGED for e in numbers)
        return f"{self.row} and {self.other} at {self.share:.0%} ({errors})"


def claim_ahead(
    results: pd.DataFrame,
    pairs: Sequence[tuple[str, str]],
    *,
    text: str,
    paper: str,
    margin: float = 1.0,
    measure: str = "anmse",
    by: Claimant = "the paper",
    row: str = "",
) -> Claim:
    """Judge that the first of every pair has a lower error than ``margin`` times the second's.

    The differences are those of the logarithms of errors: claims are about ratios, and one split in
    which a method ran away would otherwise drown the others.

    The claim holds where every pair holds at every share: a test of the whole at the level of
    each. It does not hold where one of them does not. A row that diverged in any split is not ahead
    of another; splits in which only the other diverged count for the row and are not tested.
    """
    compared = [
        _compare(results, first, second, share, margin, measure)
        for first, second in pairs
        for share in dict.fromkeys(results["share"])
    ]
    verdicts = [one.judgement.verdict for one in compared]
    verdict: Verdict = "holds"
    if "does not hold" in verdicts:
        verdict = "does not hold"
    elif "cannot be told" in verdicts:
        verdict = "cannot be told"
    return Claim(text, paper, _ours(compared), verdict, _test(compared, margin), by, row)


def claims_by_row(
    results: pd.DataFrame, pairs: Callable[[str], Sequence[tuple[str, str]]], **words: Any
) -> tuple[Claim, ...]:
    """One claim, judged as printed with published and with best constants, and in ours.

    ``pairs`` are those of a row; ``words`` are the other arguments of :func:`claim_ahead`.
    """
    return tuple(claim_ahead(results, pairs(row), row=row, **words) for row in ROWS)


def _compare(
    results: pd.DataFrame, row: str, other: str, share: float, margin: float, measure: str
) -> Compared:
    at_share = results[results["share"] == share]
    errors = at_share.pivot(index="repeat", columns="row", values=measure)[[row, other]]
    first, second = errors.to_numpy().T
    sizes = at_share.iloc[0]
    lost, other_lost = (np.isinf(errors) for errors in (first, second))
    if lost.any() or other_lost.all():
        words = f"{row if lost.any() else other} diverged"
        judgement = Judgement("does not hold" if lost.any() else "holds", np.nan, np.nan, words)
    else:
        judgement = verdict_over_repeats(
            np.log(margin * second / first)[~other_lost],
            test_to_train=sizes["n_test"] / sizes["n_train"],
        )
    means = float(first.mean()), float(second.mean())
    return Compared(row, other, share, len(first), *means, judgement)


def _ours(compared: Sequence[Compared]) -> str:
    """Ratios, how many comparisons hold, and which do not."""
    finite = [one for one in compared if np.isfinite([one.error, one.other_error]).all()]
    ratios = [one.error / one.other_error for one in finite]
    if not ratios:
        found = "No ratio of errors: rows diverged."
    elif len(ratios) == 1:
        found = f"Ratio of errors {ratios[0]:.3f}."
    else:
        found = f"Ratios of errors from {min(ratios):.3f} to {max(ratios):.3f}."
    held = sum(one.judgement.verdict == "holds" for one in compared)
    sentences = [found, f"Holds in {held} of {len(compared)} comparisons."]
    for verdict, words in (("does not hold", "Does not"), ("cannot be told", "Cannot be told")):
        listed = [str(one) for one in compared if one.judgement.verdict == verdict]
        if listed:
            more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
            sentences.append(f"{words}: {'; '.join(listed[:5])}{more}.")
    return " ".join(sentences)


def _test(compared: Sequence[Compared], margin: float) -> str:
    allowed = f", the second error times {margin:g}" if margin != 1.0 else ""
    if len(compared) == 1:
        return f"{compared[0].judgement.test}, of logarithms of errors{allowed}"
    name = f"corrected resampled t-test over {compared[0].repeats} repeats"
    p_values = np.array([one.judgement.p_value for one in compared])
    known = p_values[np.isfinite(p_values)]
    largest = f"; largest {p_in_words(known.max())}" if known.size else ""
    return (
        f"{name} for each of {len(compared)} comparisons, of logarithms of errors{allowed}{largest}"
    )


# The comparisons of all tables, and their description.


def compare_methods(
    name: str,
    data: EvaluationData,
    methods: Mapping[str, Method],
    scale: Scale,
    context: Context,
) -> pd.DataFrame:
    """Compare on the random splits of a scale; see :func:`compare`."""
    protocol = Protocol(train_shares=scale.train_shares, repeats=scale.repeats, seed=context.seed)
    return compare(Comparison(name, data, methods, protocol, context.protocol), context)


def split_settings(
    data: EvaluationData, scale: Scale, context: Context, **more: Any
) -> dict[str, Any]:
    """Sizes of the data, what else a table depends on, and how rows were split."""
    (rows, features), tasks = data.X.shape, data.targets.shape[1]
    shares = ", ".join(f"{share:.0%}" for share in scale.train_shares)
    return {
        **{"data": data.name, "N": rows, "D": features, "T": tasks, **more},
        "splits": f"{scale.repeats} at {shares}",
        "chosen on": "test rows" if context.protocol == "paper" else "training rows",
        "seed": context.seed,
    }


def how_compared(scale: Scale, context: Context) -> str:
    """How rows were split and settings chosen, in sentences.

    Examples
    --------
    >>> from paper.section import SMALL
    >>> how_compared(SMALL, Context())[:73]
    'All methods see the same 5 random splits at each of 40%, 80% to train on.'
    """
    shares = ", ".join(f"{share:.0%}" for share in scale.train_shares)
    split = (
        f"All methods see the same {scale.repeats} random splits at each of {shares} to train on."
    )
    if context.protocol == "paper":
        return (
            f"{split} Settings are those with the best value on the test rows, as in the paper, "
            "and a DNN stops early by them: errors of all methods with a grid are too low. Least "
            "squares and Tobit have nothing to choose; SN with our defaults chooses on training "
            "rows all the same."
        )
    return (
        f"{split} Settings are chosen on training rows alone: a fifth of them, the same for every "
        "method, decides, and the chosen method is fitted to all of them (a DNN stops early by "
        "that fifth)."
    )
