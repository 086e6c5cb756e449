"""Methods on the same random splits, side by side, continued where a run was stopped."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from deeptobit.app.study import (
    EvaluationData,
    Protocol,
    ResultStore,
    Split,
    draw_splits,
    find_usable,
    inner_folds,
    open_results,
    versions,
)
from deeptobit.metrics import some_targets
from paper.arrays import Rows
from paper.methods import Choice, Method, Problem, assess
from paper.section import Claim, Context, Scale, TableOf, Verdict
from paper.values import PaperRow
from paper.verdicts import Judgement, verdict_over_repeats

if TYPE_CHECKING:
    import pandas as pd


_JOB = ["share", "repeat", "method"]
_FOLDS = 5  # one of them validates: a fifth of the training rows


@dataclass(frozen=True, eq=False)
class Comparison:
    """What was compared, and how it is to be split.

    Parameters
    ----------
    name : str
        Of the section.
    data : EvaluationData
    methods : mapping of str to Method
    protocol : Protocol
        Shares, repeats and seed of the splits.
    choice : {"honest", "paper"}
        Who chooses among the members of a grid: validation rows, or the test rows.
    """

    name: str
    data: EvaluationData
    methods: Mapping[str, Method]
    protocol: Protocol
    choice: Choice

    def settings(self) -> dict[str, Any]:
        """What must be the same for a run to be continued."""
        settings = {
            "deeptobit": versions()["deeptobit"],
            "data": {"name": self.data.name, "fingerprint": self.data.fingerprint()},
            "protocol": asdict(self.protocol) | {"choice": self.choice},
            "methods": {name: method.settings() for name, method in self.methods.items()},
        }
        restored: dict[str, Any] = json.loads(json.dumps(settings))
        return restored


class Job(NamedTuple):
    """One method on one split."""

    method: str
    split: Split
    fold: tuple[Rows, Rows]
    tasks: list[int]

    @property
    def key(self) -> tuple[float, int, str]:
        """How its rows are found among the results."""
        return (*self.split.key, self.method)

    def __str__(self) -> str:
        """For people who wait."""
        return f"{self.method}, {self.split.share:.0%} to train on, repeat {self.split.repeat + 1}"


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
    jobs = _plan(comparison)
    store = _open(comparison, context)
    done = [] if store is None else store.read()
    seen = {key for frame in done for key in frame[_JOB].itertuples(index=False, name=None)}
    left = [job for job in jobs if job.key not in seen]
    if seen:
        label = f"{comparison.name}: continued where it stopped"
        context.progress(len(jobs) - len(left), len(jobs), label)
    for count, (job, frame) in enumerate(_run(comparison, left, context.n_jobs), start=1):
        done.append(frame)
        if store is not None:
            store.write(_in_order(done, jobs))
        context.progress(len(jobs) - len(left) + count, len(jobs), f"{comparison.name}: {job}")
    return _in_order(done, jobs)


def _open(comparison: Comparison, context: Context) -> ResultStore | None:
    """The folder of these settings and no others, so that scales may share a store."""
    parts, settings = context.folder(comparison.name), comparison.settings()
    if parts is None:
        return None
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    return open_results(parts / digest[:12], settings)


def _plan(comparison: Comparison) -> list[Job]:
    """Every method on every split; each split has one validation fold and one list of tasks."""
    data, protocol = comparison.data, comparison.protocol
    jobs = []
    for split in draw_splits(len(data.targets), data.groups, protocol):
        groups = None if data.groups is None else data.groups[split.train]
        seed = protocol.seed + split.repeat
        to_fit, to_judge = inner_folds(len(split.train), groups, _FOLDS, seed)[0]
        tasks, _ = find_usable(data.targets, split, [(to_fit, to_judge)])
        fold = (split.train[to_fit], split.train[to_judge])
        jobs += [Job(name, split, fold, tasks) for name in comparison.methods]
    return jobs


def _run(
    comparison: Comparison, jobs: list[Job], n_jobs: int
) -> Iterator[tuple[Job, pd.DataFrame]]:
    """Jobs and their rows, as they come to an end."""
    work = (
        delayed(_do)(
            comparison.data,
            comparison.methods[job.method],
            job,
            comparison.choice,
            comparison.protocol.seed,
        )
        for job in jobs
    )
    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs")(work)


def _do(
    data: EvaluationData, method: Method, job: Job, choice: Choice, seed: int
) -> tuple[Job, pd.DataFrame]:
    import pandas as pd

    split = job.split
    problem = Problem(
        data.features(split.train),
        some_targets(data.targets, job.tasks),
        split.train,
        split.test,
        job.fold,
    )
    started = perf_counter()
    # What one method warns of would fill the terminal a hundred times: it is counted.
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcomes = assess(method, problem, choice)
    cost = {"seconds": perf_counter() - started, "warnings": len(caught), "seed": seed}
    where = {"share": split.share, "repeat": split.repeat, "method": job.method}
    sizes = {"n_train": len(split.train), "n_test": len(split.test), "n_tasks": len(job.tasks)}
    used = json.dumps(versions())
    rows = [
        {
            **where,
            "row": row,
            "anmse": outcome.anmse,
            "centred_anmse": outcome.centred_anmse,
            **sizes,
            "settings": outcome.choice,
            **cost,
            "versions": used,
        }
        for row, outcome in outcomes.items()
    ]
    return job, pd.DataFrame(rows)


def _in_order(frames: list[pd.DataFrame], jobs: list[Job]) -> pd.DataFrame:
    """One table, in the same order whatever came first."""
    import pandas as pd

    table = pd.concat(frames, ignore_index=True)
    place = {job.key: position for position, job in enumerate(jobs)}
    keys = [place[key] for key in table[_JOB].itertuples(index=False, name=None)]
    # The rows of one method are in order already, and a stable sort leaves them so.
    return table.iloc[np.argsort(keys, kind="stable")].reset_index(drop=True)


# Tables of a comparison, the paper's values beside ours.

_NOTHING = "–"


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

    cells = results.groupby(["row", "share"], sort=False)[measure].agg(["mean", "std"])
    rows = list(dict.fromkeys(results["row"]))
    shares = list(dict.fromkeys(results["share"]))
    table: dict[str, list[str]] = {"method": rows}
    for share in shares:
        table[f"{share:.0%}"] = [_cell(*cells.loc[(row, share)]) for row in rows]
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
    both = errors.notna() & reference.notna()
    means, references = (one[both].groupby("share").mean() for one in (errors, reference))
    return f"{(means / references).mean():.3f}"


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
        errors = f"{self.error:.4f} against {self.other_error:.4f}"
        return f"{self.row} and {self.other} at {self.share:.0%} ({errors})"


def claim_ahead(
    results: pd.DataFrame,
    pairs: Sequence[tuple[str, str]],
    *,
    text: str,
    paper: str,
    margin: float = 1.0,
    measure: str = "anmse",
) -> Claim:
    """Judge that the first of every pair has a lower error than ``margin`` times the second's.

    The differences are those of the logarithms of errors: claims are about ratios, and one split in
    which a method ran away would otherwise drown the others.

    The claim holds where every pair holds at every share: a test of the whole at the level of
    each. It does not hold where one of them does not.
    """
    compared = [
        _compare(results, row, other, share, margin, measure)
        for row, other in pairs
        for share in dict.fromkeys(results["share"])
    ]
    verdicts = [one.judgement.verdict for one in compared]
    verdict: Verdict = "holds"
    if "does not hold" in verdicts:
        verdict = "does not hold"
    elif "cannot be told" in verdicts:
        verdict = "cannot be told"
    return Claim(text, paper, _ours(compared), verdict, _test(compared, margin))


def _compare(
    results: pd.DataFrame, row: str, other: str, share: float, margin: float, measure: str
) -> Compared:
    at_share = results[results["share"] == share]
    errors = at_share.pivot(index="repeat", columns="row", values=measure)[[row, other]]
    first, second = errors.to_numpy().T
    sizes = at_share.iloc[0]
    judgement = verdict_over_repeats(
        np.log(margin * second / first), test_to_train=sizes["n_test"] / sizes["n_train"]
    )
    means = float(first.mean()), float(second.mean())
    return Compared(row, other, share, len(first), *means, judgement)


def _ours(compared: Sequence[Compared]) -> str:
    """Ratios, how many comparisons hold, and which do not."""
    ratios = [one.error / one.other_error for one in compared]
    if len(compared) == 1:
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
    largest = f"; largest p = {known.max():.3f}" if known.size else ""
    return (
        f"{name} for each of {len(compared)} comparisons, of logarithms of errors{allowed}{largest}"
    )


# The protocol of comparisons, as they need it and in sentences.


def protocol_of(scale: Scale, context: Context) -> Protocol:
    """The paper's random splits."""
    return Protocol(train_shares=scale.train_shares, repeats=scale.repeats, seed=context.seed)


def how_split(protocol: Protocol) -> str:
    """How rows were split.

    Examples
    --------
    >>> print(how_split(Protocol(train_shares=(0.4, 0.8), repeats=5)))
    All methods see the same 5 random splits at each of 40%, 80% to train on.
    """
    shares = ", ".join(f"{share:.0%}" for share in protocol.train_shares)
    return (
        f"All methods see the same {protocol.repeats} random splits at each of {shares} to train "
        "on."
    )


def how_chosen(choice: Choice) -> str:
    """How settings were chosen."""
    if choice == "paper":
        return (
            "Settings are those with the best value on the test rows, as in the paper, and a DNN "
            "stops early by them: errors of all methods with a grid are too low. Least squares and "
            "Tobit have nothing to choose; SN with our defaults chooses on training rows all the "
            "same."
        )
    return (
        "Settings are chosen on training rows alone: a fifth of them, the same for every method, "
        "decides, and the chosen method is fitted to all of them (a DNN stops early by that fifth)."
    )
