"""From a study whose table is beyond memory to its model, and to numbers on rows held out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deeptobit.app.study.chunks import (
    Chunk,
    ChunkedTable,
    Passes,
    SmallestLots,
    Survey,
    draw_lots,
    survey_table,
)
from deeptobit.app.study.config import Study, settings_text
from deeptobit.app.study.data import FEWEST_GROUPS, read_groups
from deeptobit.app.study.doctor import Finding, dependence, unbounded
from deeptobit.app.study.encoding import Encoder
from deeptobit.app.study.errors import StudyError
from deeptobit.app.study.fitted import FittedStudy, HeldOut, versions
from deeptobit.app.study.fitting import make_network
from deeptobit.app.study.measures import predict_null
from deeptobit.app.study.outcomes import Entries, limits_by_row, read_entries, targets_of
from deeptobit.app.study.predict import predict_rows
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.estimators import SubspaceNetworkRegressor
from deeptobit.scale import Block, LocalSource
from deeptobit.targets import CensoredTargets
from deeptobit.threads import one_blas_thread

if TYPE_CHECKING:
    import pandas as pd


# Which rows of a table beyond memory are held out: drawn by lot, the same in every pass.

MOST_HELD_OUT = 10_000  # rows that are judged: R² is then known to a hundredth
_SHARE = 0.1  # of rows or groups, at most
_STEP = 2**20  # rows whose lots are drawn at a time


@dataclass(frozen=True)
class HeldRows:
    """The rows, or whole groups of rows, that the model does not see.

    Parameters
    ----------
    study : Study
    limit : float
        The largest lot that is held out.
    """

    study: Study
    limit: float

    @classmethod
    def of(cls, study: Study, n_rows: int, groups: SmallestLots | None) -> HeldRows:
        """A tenth of the rows, or some 10,000 if that is less; a tenth of the groups."""
        if groups is None:
            return cls(study, min(_SHARE, MOST_HELD_OUT / n_rows))
        if groups.n_groups < FEWEST_GROUPS:
            raise study.source.error(
                ("data", "group"),
                f"there are {groups.n_groups} groups of {study.data.group!r}, which are never "
                f"split, and at least {FEWEST_GROUPS} are needed",
            )
        return cls(study, groups.below(_SHARE))

    def among(self, chunk: Chunk) -> BoolArray:
        """Which rows of a chunk are held out."""
        groups = read_groups(self.study, chunk.table)
        return self._drawn(chunk.rows if groups is None else groups)

    def count(self, table: ChunkedTable) -> int:
        """How many rows of a table are held out."""
        group = self.study.data.group
        drawn: Iterator[BoolArray]
        if group is None:
            starts = range(0, table.n_rows, _STEP)
            drawn = (
                self._drawn(np.arange(start, min(start + _STEP, table.n_rows))) for start in starts
            )
        else:
            drawn = map(self.among, table.chunks([group]))
        n_held_out = sum(int(held_out.sum()) for held_out in drawn)
        if not 0 < n_held_out < table.n_rows:
            raise StudyError(
                f"{table.file}: of {table.n_rows:,} rows {n_held_out:,} would be held out, which "
                "leaves nothing to learn from or to be tested on; add rows or groups"
            )
        return n_held_out

    def _drawn(self, of: NDArray[np.int64] | NDArray[np.object_]) -> BoolArray:
        return np.asarray(draw_lots(of, self.study.model.seed) <= self.limit)


# The rows of a table beyond memory that stay in memory, because the model is judged by them.

_MOST_VALUES = 10_000  # of a target, from which the model without features learns


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Some of the rows that are held out, and outcomes of some that are not.

    Parameters
    ----------
    X : DataFrame of shape (n, D)
    targets : CensoredTargets of shape (n, T)
    others : CensoredTargets of shape (m, T)
        At most some 10,000 values of every target, the others missing.
    """

    X: pd.DataFrame
    targets: CensoredTargets
    others: CensoredTargets


def keep_rows(
    study: Study, table: ChunkedTable, survey: Survey, held_out: HeldRows, n_held_out: int
) -> KeptRows:
    """Read the table once more, and keep what lots say; rows without any target are left out.

    Parameters
    ----------
    study, table, survey
    held_out : HeldRows
        Which rows the model has not seen.
    n_held_out : int
        Their number: of more than 10,000, which large groups may be, some are kept.
    """
    import pandas as pd

    encoder = survey.encoder
    share = MOST_HELD_OUT / n_held_out
    shares = _MOST_VALUES / survey.known
    tested, others, X = list[Entries](), list[Entries](), list[FloatArray]()
    for chunk in table.chunks(width=len(encoder.features)):
        entries, apart = read_entries(study, chunk.table), held_out.among(chunk)
        lots = draw_lots(chunk.rows, study.model.seed + 1)
        known = ~np.isnan(entries.values)
        kept = apart & (lots <= share) & known.any(axis=1)
        if kept.any():
            tested.append(Entries(*(part[kept] for part in entries)))
            X.append(encoder.matrix(chunk.where(kept).table))
        wanted = known & ~apart[:, None] & (lots[:, None] <= shares)
        some, values = wanted.any(axis=1), np.where(wanted, entries.values, np.nan)
        others.append(Entries(values[some], entries.lower[some], entries.upper[some]))
    if not tested:
        raise StudyError(f"{table.file}: no row that is held out has a target; add rows")
    return KeptRows(
        pd.DataFrame(np.concatenate(X), columns=pd.Index(encoder.features)),
        targets_of(study, _joined(tested)),
        targets_of(study, _joined(others)),
    )


def _joined(parts: Iterable[Entries]) -> Entries:
    return Entries(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


# The rows of a table beyond memory that a model is fitted to.


class TrainingRows(LocalSource):
    """Rows that are not held out, encoded as they are read, for an estimator's ``fit``.

    Parameters
    ----------
    study : Study
    table : ChunkedTable
    encoder : Encoder
    held_out : HeldRows
    n_rows : int
        Those of the table that are not held out.
    """

    def __init__(
        self,
        study: Study,
        table: ChunkedTable,
        encoder: Encoder,
        held_out: HeldRows,
        n_rows: int,
    ) -> None:
        self._study, self._table, self._encoder = study, table, encoder
        self._held_out, self._n_rows = held_out, n_rows
        self.features = tuple(encoder.features)
        self.targets = tuple(target.name for target in study.targets)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._n_rows

    def blocks(self, skip: int = 0) -> Iterator[Block]:
        """All blocks in their order, from the row number ``skip`` on."""
        for everyone in self._table.chunks(width=len(self.features)):
            chunk = everyone.where(~self._held_out.among(everyone))
            n_rows = len(chunk.rows)
            if skip < n_rows:
                yield self._block(chunk.where(np.arange(n_rows) >= skip) if skip else chunk)
            skip = max(skip - n_rows, 0)

    def _block(self, chunk: Chunk) -> Block:
        entries = read_entries(self._study, chunk.table)
        lower, upper = limits_by_row(self._study, entries)
        return Block(
            X=self._encoder.matrix(chunk.table),
            Y=entries.values,
            weight=None,
            lower=lower,
            upper=upper,
            where=chunk.table.file,
            first_row=int(chunk.table.lines[0]),
        )


def stream_study(
    study: Study,
    path: Path,
    *,
    progress: Passes = lambda number, done, total: None,
    checkpoint: Path | None = None,
) -> FittedStudy:
    r"""Fit the model of a study to a Parquet table that is read some rows at a time.

    A first pass learns how columns become features. Then the network of :func:`make_network` is
    fitted to all rows but some 10,000, or a tenth if that is less, drawn by lot; or to all but a
    tenth of the groups. A last pass gathers rows that were held out, by which the model is judged:
    it has not seen them, and is not fitted again. Memory does not grow with the rows. Ids are not
    read, so that nobody notices one that occurs twice.

    Parameters
    ----------
    study : Study
    path : Path
        A Parquet file or a folder of them.
    progress : callable, optional
        Called with the number of the pass, how many rows it has read, and of how many.
    checkpoint : Path, optional
        A file that says where the fit stands; one that is there is taken up.

    Examples
    --------
    >>> import pandas as pd
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import read_study
    >>> rng = np.random.default_rng(0)
    >>> age = rng.normal(70.0, 8.0, size=2000)
    >>> MMSE = np.clip(np.round(29.0 - 0.3 * (age - 70.0) + rng.normal(size=2000)), 0, 30)
    >>> with TemporaryDirectory() as folder:
    ...     table = Path(folder, "a.parquet")
    ...     pd.DataFrame({"age": age, "MMSE": MMSE}).to_parquet(table)
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text(
    ...         'data.file = "a.parquet"\ntargets.MMSE = {lower = 0, upper = 30}\n'
    ...         'model.members = ["stack"]'
    ...     )
    ...     fitted = stream_study(read_study(path), table)
    >>> fitted.n_rows, len(fitted.held_out.targets)
    (2000, 178)
    >>> fitted.held_out.table()[["entries", "at_upper", "r2", "null_r2"]].round(1)
            entries  at_upper   r2  null_r2
    target
    MMSE        178       0.5  0.9     -0.0
    """
    started = perf_counter()
    network = make_network(study)
    table = ChunkedTable(study, path, progress)
    try:
        survey = survey_table(study, table)
        held_out = HeldRows.of(study, table.n_rows, survey.groups)
        n_held_out = held_out.count(table)
        n_seen = table.n_rows - n_held_out
        rows = TrainingRows(study, table, survey.encoder, held_out, n_seen)
        messages = _fit(network, rows, checkpoint)
        kept = keep_rows(study, table, survey, held_out, n_held_out)
    except StudyError:
        raise
    except ValueError as error:
        raise StudyError(f"{table.file}: the model cannot be fitted: {error}") from error
    seconds = perf_counter() - started
    history = network.history_
    facts = {
        "solver": f"{history['solver']}: {history['reason']}",
        "streamed": f"{n_seen:,} of {table.n_rows:,} rows in {table.n_passes} passes",
        "rows per second": f"{table.n_passes * table.n_rows / seconds:,.0f}",
        "seed": study.model.seed,
        "date": date.today(),
        "seconds": f"{seconds:.1f}",
    }
    return FittedStudy(
        model=network,
        encoder=survey.encoder,
        name=study.source.path.stem,
        text=settings_text(study),
        held_out=_judge(network, kept, study.evaluation.coverage),
        findings=(*_findings(study, survey, kept), *messages),
        n_groups=None if survey.groups is None else survey.groups.n_groups,
        facts=versions() | {name: str(fact) for name, fact in facts.items()},
        n_rows=table.n_rows,
    )


def _fit(
    network: SubspaceNetworkRegressor, rows: TrainingRows, checkpoint: Path | None
) -> list[Finding]:
    """Fit, and say what the fit warns of."""
    with one_blas_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stopped = checkpoint is not None and checkpoint.exists()
        network.fit(rows, checkpoint=checkpoint, resume=stopped)
    messages = dict.fromkeys(str(warning.message) for warning in caught)
    return [Finding("warning", "model", message) for message in messages]


def _judge(network: SubspaceNetworkRegressor, kept: KeptRows, coverage: float) -> HeldOut:
    """What the network, and the model without features, say of rows that they have not seen."""
    targets = kept.targets
    limits = targets.lower_bounds, targets.upper_bounds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what holds for all rows was said when they were fitted
        null = predict_null(network.noise_, kept.others, targets)
    stages = network.staged_predict(kept.X, lower=targets.entry_lower, upper=targets.entry_upper)
    return HeldOut(
        targets=targets,
        predictive=predict_rows(network, kept.X, *limits),
        null=null,
        stages=tuple(stages),
        coverage=coverage,
    )


def _findings(study: Study, survey: Survey, kept: KeptRows) -> list[Finding]:
    """What some of the rows are enough to see: a bound that is not declared, a feature twice."""
    observed = np.where(kept.targets.observed, kept.targets.low, np.nan)
    found = [
        finding
        for target, values in zip(study.targets, observed.T, strict=True)
        for finding in unbounded(target, values)
    ]
    return [*found, *dependence(kept.X, survey.encoder)]
