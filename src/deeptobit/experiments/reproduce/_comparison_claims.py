"""Claims of the form "A is ahead of B at every split size", judged by one test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deeptobit.experiments.reproduce._section import Claim, Verdict
from deeptobit.experiments.reproduce._verdicts import Judgement, verdict_over_repeats

if TYPE_CHECKING:
    import pandas as pd


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
