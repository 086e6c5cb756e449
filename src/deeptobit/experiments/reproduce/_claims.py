"""Claims whose verdicts come from repeats."""

from __future__ import annotations

from numpy.typing import ArrayLike

from deeptobit.experiments.reproduce._section import Claim
from deeptobit.experiments.reproduce._verdicts import verdict_over_repeats


def claim_over_repeats(
    text: str,
    differences: ArrayLike,
    tested: str,
    *,
    paper: str,
    ours: str,
    test_to_train: float = 0.0,
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
    return Claim(text, paper, ours, found.verdict, f"{tested} > 0: {found.test}")
