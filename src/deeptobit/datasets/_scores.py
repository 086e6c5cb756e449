"""The 30 clinical scores of a simulated cohort: their ranges, and how people spread in them."""

from typing import Literal, NamedTuple

NoiseKind = Literal["gaussian", "skewed", "heavy"]


class Score(NamedTuple):
    """One test at one visit: an integer from ``lower`` to ``upper``.

    Before rounding and censoring, people have mean ``mean`` and standard deviation ``sd``, of
    which the brain explains the share ``explained`` (of the variance); ``worse`` is the sign of
    impairment, +1 where a high score is a bad one, and ``noise`` the shape of the rest.
    """

    test: str
    visit: Literal["bl", "m06"]
    lower: int
    upper: int
    worse: Literal[-1, 1]
    mean: float
    sd: float
    explained: float
    noise: NoiseKind

    @property
    def name(self) -> str:
        """Test and visit, for example ``MMSE_bl``."""
        return f"{self.test}_{self.visit}"


SCORES = (
    Score("ADAS11", "bl", 0, 70, +1, 11.0, 6.5, 0.36, "heavy"),
    Score("ADAS13", "bl", 0, 85, +1, 17.0, 9.5, 0.40, "gaussian"),
    Score("ADASQ4", "bl", 0, 10, +1, 5.0, 3.0, 0.34, "gaussian"),
    Score("MMSE", "bl", 0, 30, -1, 27.0, 2.8, 0.30, "gaussian"),
    Score("MOCA", "bl", 0, 30, -1, 22.5, 4.0, 0.32, "gaussian"),
    Score("CDRSB", "bl", 0, 18, +1, 1.6, 2.0, 0.26, "skewed"),
    Score("FAQ", "bl", 0, 30, +1, 4.0, 6.0, 0.24, "skewed"),
    Score("GDS", "bl", 0, 15, +1, 1.5, 1.6, 0.05, "gaussian"),
    Score("NPIQ", "bl", 0, 36, +1, 2.0, 3.0, 0.06, "heavy"),
    Score("LIMM", "bl", 0, 25, -1, 9.5, 5.0, 0.28, "gaussian"),
    Score("LDEL", "bl", 0, 25, -1, 6.5, 5.5, 0.33, "gaussian"),
    Score("RAVLT1", "bl", 0, 15, -1, 4.5, 1.8, 0.13, "gaussian"),
    Score("RAVLT2", "bl", 0, 15, -1, 6.3, 2.3, 0.16, "gaussian"),
    Score("RAVLT3", "bl", 0, 15, -1, 7.5, 2.7, 0.21, "gaussian"),
    Score("RAVLT4", "bl", 0, 15, -1, 8.3, 3.0, 0.23, "gaussian"),
    Score("RAVLT5", "bl", 0, 15, -1, 8.9, 3.2, 0.25, "gaussian"),
    Score("RAVLT6", "bl", 0, 15, -1, 5.5, 4.2, 0.29, "gaussian"),
    Score("RAVLTLEARN", "bl", -15, 15, -1, 4.3, 2.7, 0.08, "gaussian"),
    Score("RAVLTDEL", "bl", 0, 15, -1, 4.2, 4.2, 0.31, "gaussian"),
    Score("RAVLTREC", "bl", 0, 15, -1, 10.7, 3.7, 0.19, "gaussian"),
    Score("TMTA", "bl", 0, 150, +1, 44.0, 24.0, 0.11, "skewed"),
    Score("TMTB", "bl", 0, 300, +1, 140.0, 85.0, 0.18, "skewed"),
    Score("CLOCK", "bl", 0, 5, -1, 4.2, 1.1, 0.10, "gaussian"),
    Score("ADAS11", "m06", 0, 70, +1, 11.7, 7.2, 0.38, "heavy"),
    Score("ADAS13", "m06", 0, 85, +1, 17.8, 10.2, 0.39, "gaussian"),
    Score("ADASQ4", "m06", 0, 10, +1, 5.2, 3.1, 0.35, "gaussian"),
    Score("MMSE", "m06", 0, 30, -1, 26.6, 3.3, 0.27, "gaussian"),
    Score("CDRSB", "m06", 0, 18, +1, 1.9, 2.3, 0.22, "skewed"),
    Score("FAQ", "m06", 0, 30, +1, 4.8, 6.6, 0.20, "skewed"),
    Score("NPIQ", "m06", 0, 36, +1, 2.2, 3.2, 0.07, "heavy"),
)
