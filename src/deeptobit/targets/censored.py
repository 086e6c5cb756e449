"""Outcomes as intervals: observed, left-, right- or interval-censored, or missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.targets import bounds
from deeptobit.targets.bounds import BoundsLike

if TYPE_CHECKING:
    import pandas as pd


_NAMES_SHOWN = 3  # in the repr
_CLIP = (
    "or treat them as censored there with outside='clip', of the model or of "
    "CensoredTargets.from_bounds"
)
_OPEN = "or open their intervals on that side, with -inf as low or inf as high"


@dataclass(frozen=True, eq=False)
class CensoredTargets:
    r"""One interval :math:`[low_{it}, high_{it}]` per entry of Y that holds the uncensored score.

    ==================  ============================  =======================================
    entry               interval                      likelihood of a latent score η
    ==================  ============================  =======================================
    observed            low = high = y                density of y
    left-censored       low = −inf                    mass at or below ``high``
    right-censored      high = +inf                   mass at or above ``low``
    interval-censored   low < high, both finite       mass between them
    missing             both NaN                      1 (the entry is skipped)
    ==================  ============================  =======================================

    Build it with :meth:`from_bounds` or :meth:`from_intervals`; it may then be passed wherever an
    estimator takes Y, and brings its own bounds. It slices by rows, so cross-validation works.

    Attributes
    ----------
    low, high : arrays of shape (N, T)
        Read-only ends of the intervals.
    lower, upper : arrays of shape (T,)
        Bounds of the scale on which each task is recorded; ∓inf where a side is open.
    names : tuple of str
        The T target names.
    entry_lower, entry_upper : arrays of shape (N, T) or None
        Bounds that differ from row to row, where given.
    one_dimensional : bool
        Whether Y was 1-d; predictions then drop the task axis.

    Examples
    --------
    >>> targets = CensoredTargets.from_bounds([[30, 2.5], [24, 0], [29, np.nan]], lower=0,
    ...                                       upper=[30, np.inf], names=["MMSE", "errors"])
    >>> targets
    CensoredTargets(3 rows, 2 targets: MMSE, errors; 17 % at lower, 17 % at upper, 17 % missing)
    >>> targets.low
    array([[30. ,  2.5],
           [24. , -inf],
           [29. ,  nan]])
    >>> targets[:2].describe()
            entries  missing  at_lower  at_upper  interval  lower  upper
    target
    MMSE          2        0       0.0       0.5       0.0    0.0   30.0
    errors        2        0       0.5       0.0       0.0    0.0    inf
    """

    low: FloatArray
    high: FloatArray
    lower: FloatArray
    upper: FloatArray
    names: tuple[str, ...]
    entry_lower: FloatArray | None = None
    entry_upper: FloatArray | None = None
    one_dimensional: bool = False

    def __post_init__(self) -> None:
        """Make the arrays read-only: a problem never changes under its solver."""
        arrays = (self.low, self.high, self.lower, self.upper, self.entry_lower, self.entry_upper)
        for array in arrays:
            if array is not None:
                array.setflags(write=False)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the arrays of a copy read-only too: neither pickle nor deepcopy does."""
        self.__dict__.update(state)
        self.__post_init__()

    def __repr__(self) -> str:
        """Rows, targets and shares of the entries that are not observed, in a line."""
        n_rows, n_tasks = self.shape
        names = ", ".join(self.names[:_NAMES_SHOWN]) + (", …" if n_tasks > _NAMES_SHOWN else "")
        kinds = {
            "at lower": self.at_lower,
            "at upper": self.at_upper,
            "intervals": ~(self.missing | self.has_value),
            "missing": self.missing,
        }
        shares = [f"{_percent(entries)} {kind}" for kind, entries in kinds.items() if entries.any()]
        if n_rows and not shares:
            shares = ["all observed"]
        return (
            f"CensoredTargets({n_rows:,} row{'s' if n_rows != 1 else ''}, "
            f"{n_tasks:,} target{'s' if n_tasks != 1 else ''}: {names}"
            f"{'; ' if shares else ''}{', '.join(shares)})"
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        """Refuse: an array of numbers would lose which entries are censored."""
        raise TypeError(
            "CensoredTargets is not an array: pass it to estimators and measures of deeptobit as "
            "it is; for all else its .values hold y or the bound it is censored at, .low and "
            ".high the ends of the intervals"
        )

    @classmethod
    def from_bounds(
        cls,
        Y: ArrayLike,
        lower: BoundsLike = None,
        upper: BoundsLike = None,
        *,
        entry_lower: ArrayLike | None = None,
        entry_upper: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        outside: Literal["raise", "clip"] = "raise",
    ) -> CensoredTargets:
        """Outcomes on bounded scales: a value at its bound is censored there, NaN is missing.

        Parameters
        ----------
        Y : array or DataFrame of shape (N,) or (N, T)
        lower, upper : number, one per task, dict or Series by target name, or None
            Bounds of the tasks.
        entry_lower, entry_upper : arrays of shape (N, T), optional
            Bounds per entry, as for detection limits that differ from row to row; they replace
            the tasks' bounds.
        names : sequence of str, optional
            Target names; a DataFrame brings its own.
        outside : {"raise", "clip"}
            A value beyond its bound is an error, or is treated as censored at the bound.
        """
        values, names, one_dimensional = bounds.read_outcomes(Y, names)
        task_lower, task_upper = bounds.task_bounds(lower, upper, names)
        row_lower, row_upper = (
            None if given is None else bounds.entry_bounds(given, len(values), names, side)
            for given, side in [(entry_lower, "lower"), (entry_upper, "upper")]
        )
        lower_at = task_lower if row_lower is None else row_lower
        upper_at = task_upper if row_upper is None else row_upper
        bounds.check_order(lower_at, upper_at, names)
        if outside == "raise":
            bounds.refuse_outside(values, lower_at, upper_at, names, _CLIP)
        elif outside != "clip":
            raise ValueError(f"outside must be 'raise' or 'clip'; got {outside!r}")
        low, high = bounds.censor(values, lower_at, upper_at)
        return cls(low, high, task_lower, task_upper, names, row_lower, row_upper, one_dimensional)

    @classmethod
    def from_intervals(
        cls,
        low: ArrayLike,
        high: ArrayLike,
        *,
        lower: BoundsLike = None,
        upper: BoundsLike = None,
        names: Sequence[str] | None = None,
    ) -> CensoredTargets:
        """Any mixture of observed, left-, right- and interval-censored entries.

        Parameters
        ----------
        low, high : arrays or DataFrames of shape (N,) or (N, T)
            Ends of the interval known to hold each entry: equal where observed, ∓inf where open,
            both NaN (or −inf and +inf) where nothing is known.
        lower, upper : number, one per task, dict by target name, or None
            Bounds of the scale that predictions should respect; open by default.
        names : sequence of str, optional
            Target names; a DataFrame ``low`` brings its own.
        """
        starts, names, one_dimensional = bounds.read_outcomes(low, names, what="low", infinite=True)
        ends, high_names, _ = bounds.read_outcomes(high, None, what="high", infinite=True)
        if hasattr(high, "columns") and high_names != names:
            raise ValueError(
                f"the columns of low and high differ: {', '.join(names)} against "
                f"{', '.join(high_names)}"
            )
        if starts.shape != ends.shape:
            raise ValueError(f"low has shape {starts.shape} but high has {ends.shape}")
        unknown = np.isneginf(starts) & np.isposinf(ends)
        missing = (np.isnan(starts) & np.isnan(ends)) | unknown
        bounds.check_intervals(starts, ends, missing, names)
        starts, ends = np.where(missing, np.nan, starts), np.where(missing, np.nan, ends)
        task_lower, task_upper = bounds.task_bounds(lower, upper, names)
        exact = np.where(starts == ends, starts, np.nan)
        bounds.refuse_outside(exact, task_lower, task_upper, names, _OPEN)
        return cls(starts, ends, task_lower, task_upper, names, one_dimensional=one_dimensional)

    @property
    def shape(self) -> tuple[int, int]:
        """(N, T)."""
        return self.low.shape[0], self.low.shape[1]

    @property
    def ndim(self) -> int:
        """Two: rows and tasks."""
        return 2

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.low)

    def __getitem__(self, rows: Any) -> CensoredTargets:
        """Select rows by slice, index array or mask."""
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]  # how scikit-learn selects rows of an array
        if isinstance(rows, tuple) or np.ndim(rows) > 1:
            raise IndexError("CensoredTargets is indexed by rows only: targets[rows]")
        if isinstance(rows, (int, np.integer)):
            rows = [rows]
        names = "low", "high", "entry_lower", "entry_upper"
        by_row = {name: getattr(self, name) for name in names}
        return replace(self, **{n: part[rows] for n, part in by_row.items() if part is not None})

    @property
    def lower_bounds(self) -> FloatArray:
        """Bounds in force: per entry (N, T) where given, else per task (T,)."""
        return self.lower if self.entry_lower is None else self.entry_lower

    @property
    def upper_bounds(self) -> FloatArray:
        """Bounds in force: per entry (N, T) where given, else per task (T,)."""
        return self.upper if self.entry_upper is None else self.entry_upper

    @property
    def missing(self) -> BoolArray:
        """(N, T): nothing is known of the entry."""
        return np.isnan(self.low)

    @property
    def observed(self) -> BoolArray:
        """(N, T): the entry is known exactly."""
        return np.asarray(self.low == self.high)

    @property
    def at_lower(self) -> BoolArray:
        """(N, T): left-censored."""
        return np.isneginf(self.low)

    @property
    def at_upper(self) -> BoolArray:
        """(N, T): right-censored."""
        return np.isposinf(self.high)

    @property
    def has_value(self) -> BoolArray:
        """(N, T): observed or at a bound: not missing, and not an interval."""
        return np.asarray(self.observed | self.at_lower | self.at_upper)

    @property
    def values(self) -> FloatArray:
        """(N, T): y, or the bound it is censored at, or the middle of its interval."""
        return recorded_values(self.low, self.high)

    def describe(self) -> pd.DataFrame:
        """Shares at each bound and missing entries, one row per target."""
        import pandas as pd

        known = np.maximum((~self.missing).sum(axis=0), 1)
        between = ~(self.missing | self.has_value)
        table = {
            "entries": (~self.missing).sum(axis=0),
            "missing": self.missing.sum(axis=0),
            "at_lower": self.at_lower.sum(axis=0) / known,
            "at_upper": self.at_upper.sum(axis=0) / known,
            "interval": between.sum(axis=0) / known,
            "lower": _per_task(self.lower_bounds),
            "upper": _per_task(self.upper_bounds),
        }
        return pd.DataFrame(table, index=pd.Index(self.names, name="target"))


def _percent(entries: BoolArray) -> str:
    percent = 100.0 * float(np.mean(entries))
    return "<1 %" if percent < 0.5 else f"{percent:.0f} %"


def recorded_values(low: FloatArray, high: FloatArray) -> FloatArray:
    """Y where observed, the bound where censored, the middle of an interval; NaN where missing.

    Examples
    --------
    >>> recorded_values(np.array([1.0, -np.inf, 3.0, np.nan]), np.array([1.0, 0.0, 5.0, np.nan]))
    array([ 1.,  0.,  4., nan])
    """
    values = np.where(low == -np.inf, high, low)
    within = (values < high) & (high < np.inf)
    if within.any():
        values[within] += 0.5 * (high[within] - values[within])
    return values


def _per_task(ends: FloatArray) -> FloatArray:
    """Bounds per task; NaN where they differ from row to row."""
    if ends.ndim == 1:
        return ends
    if len(ends) == 0:
        return np.full(ends.shape[1], np.nan)
    return np.where((ends == ends[0]).all(axis=0), ends[0], np.nan)


OFF_GRID = 0.01  # of a step: thirds of 100 are recorded as 33.33 and 66.67
_FEWEST = 3  # different values: any two are a step apart


def find_step(values: FloatArray, lower: float = -np.inf, upper: float = np.inf) -> float:
    """Distance between neighbouring scores on a regular grid, 0 if there is none.

    Parameters
    ----------
    values : array of shape (N,)
        What was recorded, NaN where missing.
    lower, upper : float
        Bounds, which are scores too; ∓inf where open.

    Examples
    --------
    >>> find_step(np.array([0.0, 3.0, 4.0, np.nan])), find_step(np.array([33.33, 66.67]), 0, 100)
    (1.0, 33.333333333333336)
    >>> find_step(np.array([0.1, 0.34, 0.95]))
    0.0
    """
    found = np.append(values, [lower, upper])
    found = np.unique(found[np.isfinite(found)])
    if len(found) < _FEWEST:
        return 0.0
    with np.errstate(over="ignore"):  # from one end of all numbers to the other
        gap, width = float(np.diff(found).min()), float(found[-1] - found[0])
    step = width / round(width / gap) if np.isfinite(width / gap) else 0.0
    # The smallest gap is rounded as the values are; its error would add up over many steps.
    places = (found - found[0]) / step if step > 0.0 else found
    on_grid = step > 0.0 and bool((np.abs(places - places.round()) <= OFF_GRID).all())
    return step if on_grid else 0.0
