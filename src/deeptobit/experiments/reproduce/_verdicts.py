"""One test for every claim, so that no verdict is a matter of taste."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student_t

from deeptobit.experiments.reproduce._section import Verdict

LEVEL = 0.05


class Judgement(NamedTuple):
    """What repeats say of a claim.

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
    shown = "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
    verdict: Verdict = "cannot be told"
    if p_value < LEVEL:
        verdict = "holds" if mean > 0.0 else "does not hold"
    return Judgement(verdict, mean, p_value, f"{name}, {shown}")
