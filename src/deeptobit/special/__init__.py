"""Stable scalar functions of the normal distribution, on arrays."""

from deeptobit.special._interval import interval_mills, log_diff_ndtr
from deeptobit.special._normal import log_ndtr, mills, mills_excess, mills_slope, normal_log_pdf

__all__ = [
    "interval_mills",
    "log_diff_ndtr",
    "log_ndtr",
    "mills",
    "mills_excess",
    "mills_slope",
    "normal_log_pdf",
]
