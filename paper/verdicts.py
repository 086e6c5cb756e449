"""One test for every claim, so that no verdict is a matter of taste."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from scipy.stats import t as student_t
from threadpoolctl import threadpool_limits

from paper.section import Claim, Claimant, Context, Verdict

LEVEL = 0.05


class Judgement(NamedTuple):
    """The result of testing a claim over repeats.

    Parameters
    ----------
    verdict : {"holds", "does not hold", "cannot be told"}
    mean : float
        Of the differences.
    p_value : float
        Two-sided; NaN where there is nothing to test.
    test : str
        The test and its result, in words.
    """

    verdict: Verdict
    mean: float
    p_value: float
    test: str


def verdict_over_repeats(differences: ArrayLike, *, test_to_train: float = 0.0) -> Judgement:
    r"""Judge the claim "the differences are positive" by a t-test over repeats.

    With n differences of mean m and variance s², as Nadeau and Bengio (2003) correct it for repeats
    that share their data,

    .. math:: t = \frac{m}{s\sqrt{1/n + n_\text{test}/n_\text{train}}}

    has about n − 1 degrees of freedom. At a two-sided p < 0.05 the claim holds where m > 0 and does
    not hold where m < 0; otherwise it cannot be told.

    Parameters
    ----------
    differences : array of shape (n,)
        One per repeat: by how much the claim is true (error of B minus error of A for "A is ahead
        of B", value minus threshold for "the value is above it").
    test_to_train : float
        Test rows over training rows for random splits of one data set; 0 for independent data.

    Examples
    --------
    >>> verdict_over_repeats([0.3, 0.2, 0.4]).verdict
    'holds'
    >>> verdict_over_repeats([0.3, -0.2, 0.1]).verdict
    'cannot be told'
    >>> print(verdict_over_repeats([0.3, 0.2, 0.4], test_to_train=0.25).test)
    corrected resampled t-test over 3 repeats, p = 0.059
    """
    values = np.asarray(differences, dtype=np.float64)
    kind = "corrected resampled t-test" if test_to_train > 0.0 else "t-test"
    name = f"{kind} over {values.size} repeats"
    if values.size < 2 or not np.isfinite(values).all():
        return Judgement("cannot be told", float(values.mean()), np.nan, f"{name}: too few")
    mean, spread = float(values.mean()), float(values.std(ddof=1))
    error = spread * np.sqrt(1.0 / values.size + test_to_train)
    if error <= 1e-12 * abs(mean) or mean == 0.0:
        p_value = 1.0 if mean == 0.0 else 0.0
    else:
        p_value = float(2.0 * student_t.sf(abs(mean) / error, values.size - 1))
    verdict: Verdict = "cannot be told"
    if p_value < LEVEL:
        verdict = "holds" if mean > 0.0 else "does not hold"
    return Judgement(verdict, mean, p_value, f"{name}, {p_in_words(p_value)}")


def p_in_words(p_value: float) -> str:
    """To three digits.

    Examples
    --------
    >>> p_in_words(0.0123), p_in_words(1e-5)
    ('p = 0.012', 'p < 0.001')
    """
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"


# Claims whose verdicts come from repeats.


def claim_over_repeats(
    text: str,
    differences: ArrayLike,
    tested: str,
    *,
    paper: str,
    ours: str,
    test_to_train: float = 0.0,
    by: Claimant = "the paper",
    row: str = "",
) -> Claim:
    """A claim that holds where differences are positive.

    Parameters
    ----------
    text : str
    differences : array of shape (n,)
        One per repeat; see :func:`verdict_over_repeats`.
    tested : str
        What the differences are, such as "smallest cosine − 0.99".
    paper, ours : str
    test_to_train : float
    by, row : str
        As in :class:`~paper.section.Claim`.

    Examples
    --------
    >>> claim = claim_over_repeats(
    ...     "SN is ahead", [0.2, 0.3, 0.2], "error of Tobit − error of SN",
    ...     paper="Table 2: 0.0369 against 0.0428", ours="0.30 against 0.53",
    ... )
    >>> claim.verdict, claim.test
    ('holds', 'error of Tobit − error of SN > 0: t-test over 3 repeats, p = 0.020')
    """
    found = verdict_over_repeats(differences, test_to_train=test_to_train)
    return Claim(text, paper, ours, found.verdict, f"{tested} > 0: {found.test}", by, row)


# One verdict for a claim that was tested in several rows.

Summary = Literal["holds", "holds only with", "does not hold", "cannot be told"]


class JudgedClaim(NamedTuple):
    """A claim as it was tested in all rows, in their order."""

    rows: tuple[Claim, ...]

    @property
    def text(self) -> str:
        """The claim, in one sentence."""
        return self.rows[0].text

    @property
    def by(self) -> Claimant:
        """Who claims it."""
        return self.rows[0].by

    @property
    def summary(self) -> Summary:
        """Holds, or does not, if it does so in all rows; otherwise partly, if in some."""
        verdicts = {claim.verdict for claim in self.rows}
        if len(verdicts) == 1:
            return self.rows[0].verdict
        return "holds only with" if "holds" in verdicts else "cannot be told"

    @property
    def verdict(self) -> str:
        """The summary in words, with the rows in which it holds.

        Examples
        --------
        >>> rows = {"as printed, best constants": "holds", "ours": "cannot be told"}
        >>> claims = [Claim("", "", "", verdict, "", row=row) for row, verdict in rows.items()]
        >>> JudgedClaim(tuple(claims)).verdict
        'holds only with best constants'
        """
        if self.summary != "holds only with":
            return self.summary
        held = [claim.row for claim in self.rows if claim.verdict == "holds"]
        return f"{self.summary} {' and '.join(row.split(', ')[-1] for row in held)}"


def judged_claims(claims: Sequence[Claim], by: Claimant) -> list[JudgedClaim]:
    """The claims of the paper, or ours, in their order; those of one text are one."""
    of_text: dict[str, list[Claim]] = {}
    for claim in claims:
        if claim.by == by:
            of_text.setdefault(claim.text, []).append(claim)
    return [JudgedClaim(tuple(rows)) for rows in of_text.values()]


# The same work on many data sets, in parallel.

Item = TypeVar("Item")
Result = TypeVar("Result")


def over_repeats(
    work: Callable[[Item], Result], items: Sequence[Item], context: Context, label: str
) -> list[Result]:
    """Results of ``work`` in the order of ``items``; each runs on one BLAS thread.

    Examples
    --------
    >>> over_repeats(abs, [-1, 2], Context(), "absolute values")
    [1, 2]
    """
    jobs = (delayed(_on_one_thread)(work, item) for item in items)
    results: list[Result] = []
    for result in Parallel(n_jobs=context.n_jobs, return_as="generator")(jobs):
        results.append(result)
        context.progress(len(results), len(items), label)
    return results


def mean_and_sd(values: ArrayLike, digits: int = 4) -> str:
    """Mean and standard deviation over repeats, as the paper prints them.

    Examples
    --------
    >>> mean_and_sd([0.1, 0.3], 2), mean_and_sd([1.0])
    ('0.20 (0.14)', '1.0000')
    """
    array = np.asarray(values, dtype=np.float64)
    mean = f"{array.mean():.{digits}f}"
    return mean if array.size < 2 else f"{mean} ({array.std(ddof=1):.{digits}f})"


def _on_one_thread(work: Callable[[Item], Result], item: Item) -> Result:
    with threadpool_limits(1):
        return work(item)
