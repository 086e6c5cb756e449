"""Tables that do not fit in memory: known by their size, read and fitted in chunks."""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
import psutil
from joblib import effective_n_jobs
from numpy.typing import NDArray
from pandas.util import hash_array

from deeptobit.app.study import columns, data
from deeptobit.app.study.config import Study
from deeptobit.app.study.doctor.registry import diagnose
from deeptobit.app.study.effects import measure_parts
from deeptobit.app.study.fitted import FittedStudy
from deeptobit.app.study.fitting import as_findings, describe_fit, make_network, predict_test_rows
from deeptobit.app.study.formats import Chunk, TableFile, as_study_error
from deeptobit.app.study.tables import StudyError, Table
from deeptobit.arrays import BoolArray, FloatArray, IntArray
from deeptobit.extras import require
from deeptobit.runtime import one_blas_thread
from deeptobit.scale import Block, LocalSource, ParquetTable, TextTable
from deeptobit.targets import CensoredTargets

# Whether a table fits in memory.

_PREFIXES = " kmgt"
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_LIMITS = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")


def available_memory(root: Path = Path("/")) -> int:
    """Available memory in bytes; less if a container, whose limits are below ``root``, has less."""
    limits = [int(psutil.virtual_memory().available)]
    for name in _LIMITS:
        with suppress(OSError, ValueError):  # the word max, or no file, means no limit
            limits.append(int((root / name).read_text()))
    return min(limits)


def read_bytes(text: str) -> int:
    """An amount of memory such as ``500MB``, ``1.5 GB`` or ``2GiB``, in bytes.

    Examples
    --------
    >>> read_bytes("1.5 GB"), read_bytes("2KiB")
    (1500000000, 2048)
    """
    amount = _AMOUNT.fullmatch(text.strip())
    if amount is None or float(amount[1]) == 0.0:
        raise StudyError(f"an amount of memory is written 500MB or 4GB; got {text!r}")
    step = 1024 if amount[3] else 1000
    return int(float(amount[1]) * step ** _PREFIXES.index(amount[2].lower() or " "))


# The size of a table, without keeping its rows.

# Bytes per cell at the peak of reading a table and building its features, and then, in every
# process that fits, per cell and per value of a target; by `python -m benchmarks.decisions memory`.
_NUMBER, _WORD, _TEXT_CELL, _OTHER_CELL = 100, 180, 130, 180
_CELL, _OUTCOME = 40, 300
_COMFORTABLE = 0.5  # share of the memory


@dataclass(frozen=True)
class MemoryCheck:
    """The memory that a study needs, and the memory limit.

    Attributes
    ----------
    file : str
        Name of the table.
    n_rows, n_columns : int
        Its size.
    reading, needed : int
        Bytes that reading all of it takes, and that reading and fitting take.
    limit : int
        Bytes that may be used.
    """

    file: str
    n_rows: int
    n_columns: int
    reading: int
    needed: int
    limit: int

    @property
    def enough(self) -> bool:
        """Whether the table fits comfortably: in half of the memory."""
        return self.needed <= _COMFORTABLE * self.limit

    @property
    def shortage(self) -> str:
        """How much memory is needed and how much there is, as the beginning of a sentence."""
        show = require("rich.filesize", "app").decimal
        table = f"{self.file} ({self.n_rows:,} rows × {self.n_columns:,} columns)"
        share = f"more than half of the {show(self.limit)} of available memory"
        return f"{table} would take about {show(self.needed)}, {share}"


def check_memory(
    study: Study, path: Path | TableFile, limit: int, n_jobs: int | None = None
) -> MemoryCheck:
    r"""Compare the memory that fitting a study takes with a limit.

    Reading takes 100 bytes per number of a Parquet file, 130 per cell of a text file and 180 per
    word or cell of any other. Fitting takes, in every process, 40 bytes per cell and 300 per value
    of a target.

    Parameters
    ----------
    study : Study
    path : Path or TableFile
    limit : int
        Memory limit in bytes.
    n_jobs : int, optional
        Processes that fit in parallel, as joblib counts them; no more than there are folds.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.app.study import read_study
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("age,MMSE\n" + 1000 * "70,30\n")
    ...     path = Path(folder, "a.toml")
    ...     _ = path.write_text('data.file = "a.csv"\ntargets.MMSE.upper = 30')
    ...     study = read_study(path)
    ...     check = check_memory(study, study.data_path, limit=10**6)
    >>> check.needed, check.enough
    (640000, False)
    """
    table = data.open_data(study, path)
    source, n_columns = table.source, len(table.source.columns)
    reading = (_TEXT_CELL if isinstance(source, TextTable) else _OTHER_CELL) * n_columns
    if isinstance(source, ParquetTable):
        reading = _NUMBER * (n_columns - source.n_words) + _WORD * source.n_words
    processes = min(effective_n_jobs(n_jobs), study.model.cv)
    fitting = processes * (_CELL * n_columns + _OUTCOME * len(study.targets))
    read, needed = source.n_rows * reading, source.n_rows * (reading + fitting)
    return MemoryCheck(table.file, source.n_rows, n_columns, read, needed, limit)


# If it does not, it is read in chunks.

_MOST_CELLS = 2**21  # of a chunk, once encoded: 16 MB
_MOST_ROWS, _FEWEST_ROWS = 8192, 256

# Called with the number of the pass over the rows, how many are read, and of how many.
Passes = Callable[[int, int, int], None]


class ChunkedTable:
    """The columns of a table that a study uses, some rows at a time; the id is not read.

    Parameters
    ----------
    study : Study
    path : Path or TableFile
    progress : callable
    """

    def __init__(self, study: Study, path: Path | TableFile, progress: Passes) -> None:
        self.opened, self.study = data.open_data(study, path), study
        self.file, self.n_rows = self.opened.file, self.opened.source.n_rows
        self._progress, self.n_passes = progress, 0
        columns.check_columns(study, self.opened)
        self.features = columns.feature_columns(study, self.opened)
        named = columns.named_columns(study)
        named.pop(("data", "id"), None)
        self._used = list(dict.fromkeys([*self.features, *named.values()]))

    def chunks(self, names: Sequence[str] | None = None, width: int = 0) -> Iterator[Chunk]:
        """All rows in their order: some of the table at a time, and their numbers in it.

        Parameters
        ----------
        names : sequence of str, optional
            Columns to read; by default all that the study uses.
        width : int
            How many features a row becomes, if more than it has columns.
        """
        names = self._used if names is None else names
        n_rows = int(np.clip(_MOST_CELLS // max(width, len(names)), _FEWEST_ROWS, _MOST_ROWS))
        for table, rows in self.opened.chunks(names, n_rows):
            yield table, rows
            self._progress(self.n_passes + 1, int(rows[-1]) + 1, self.n_rows)
        self.n_passes += 1  # only if all rows were read


# Hashes as random numbers, which a row or a group has in every pass.

_MOST_HASHES = 2**16  # groups that are counted one by one; beyond, their number is estimated


def hash_uniform(keys: NDArray[Any], seed: int) -> FloatArray:
    """A pseudo-random number in [0, 1) for every key; equal keys have equal numbers.

    Nothing has to be stored to draw the same numbers in the next pass.

    Parameters
    ----------
    keys : array of shape (N,)
        Whole numbers, or text.
    seed : int

    Examples
    --------
    >>> hash_uniform(np.array(["Ann", "Ben", "Ann"], dtype=object), seed=0).round(2)
    array([0.84, 0.38, 0.84])
    """
    keys = keys if keys.dtype == object else keys.astype(np.uint64)
    salt = hash_array(np.array([f"seed {seed}"], dtype=object))  # the hash of the number 0 is 0
    return np.asarray(hash_array(hash_array(keys) ^ salt) / 2.0**64)


@dataclass(frozen=True)
class GroupCount:
    """The number of groups from their k smallest hashes (a k-minimum-values sketch).

    Memory holds 65,536 hashes. Up to as many groups are counted exactly. Of more, the largest
    hash that is stored estimates the number to about half a percent.

    Parameters
    ----------
    hashes : array, ascending
    """

    hashes: FloatArray

    def add(self, hashes: FloatArray) -> "GroupCount":
        """With the groups of some more rows."""
        return GroupCount(np.unique(np.concatenate([self.hashes, hashes]))[:_MOST_HASHES])

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        if len(self.hashes) < _MOST_HASHES:
            return len(self.hashes)
        return round((_MOST_HASHES - 1) / float(self.hashes[-1]))

    def quantile(self, share: float) -> float:
        """The hash up to which this share of the groups lies, and at least one group."""
        wanted = max(1, round(share * self.n_groups))
        return float(self.hashes[wanted - 1]) if wanted <= len(self.hashes) else share


# The first pass: summaries of the columns, and the numbers of values and groups.


def read_first_pass(table: ChunkedTable) -> tuple[data.Encoder, IntArray, GroupCount | None]:
    """Read and check every cell once, before any model is fitted.

    Returns
    -------
    encoder : Encoder
        The same that would be learned from the table in memory.
    n_values : array of shape (T,)
        Number of values of every target.
    groups : GroupCount or None
    """
    study, groups = table.study, None
    declared = columns.matching_columns(study, "categorical", table.opened)
    summaries = [columns.ColumnSummary(name, name in declared) for name in table.features]
    n_values = np.zeros(len(study.targets), dtype=np.int64)
    for chunk, _ in table.chunks():
        for summary in summaries:
            summary.add(chunk)
        n_values += (~np.isnan(data.read_entries(study, chunk)[0])).sum(axis=0)
        labels = data.read_groups(study, chunk)
        if labels is not None:
            hashes = hash_uniform(labels, study.model.seed)
            groups = (groups or GroupCount(np.zeros(0))).add(hashes)
    data.check_values(study, n_values)
    return data.learn_encoder(study, summaries, table.file), n_values, groups


# Which rows are held out: the same in every pass.

MOST_HELD_OUT = 10_000  # held-out rows: R² is then known to about 0.01
_SHARE = 0.1  # of rows or groups, at most
_STEP = 2**16  # rows that are hashed at a time


@dataclass(frozen=True)
class HeldOutRows:
    """The rows, or whole groups of rows, that the model is tested on and never fitted to.

    Attributes
    ----------
    study : Study
    limit : float
        Rows or groups with a hash up to this are held out.
    """

    study: Study
    limit: float

    @classmethod
    def choose(cls, study: Study, n_rows: int, groups: GroupCount | None) -> "HeldOutRows":
        """A tenth of the rows, or about 10,000 if that is less; or a tenth of the groups."""
        if groups is None:
            return cls(study, min(_SHARE, MOST_HELD_OUT / n_rows))
        if groups.n_groups < data.FEWEST_GROUPS:
            message = f"there are {groups.n_groups} groups of {study.data.group!r}, which are never"
            message += f" split, and at least {data.FEWEST_GROUPS} are needed"
            raise study.source.error(("data", "group"), message)
        return cls(study, groups.quantile(_SHARE))

    def among(self, table: Table, rows: IntArray) -> BoolArray:
        """Which of some rows of these numbers are held out."""
        groups = data.read_groups(self.study, table)
        return self._chosen(rows if groups is None else groups)

    def count(self, table: ChunkedTable) -> int:
        """How many rows of a table are held out."""
        group, n_rows = self.study.data.group, table.n_rows
        if group is None:
            starts = range(0, n_rows, _STEP)
            parts = (self._chosen(np.arange(k, min(k + _STEP, n_rows))) for k in starts)
        else:
            parts = (self.among(*chunk) for chunk in table.chunks([group]))
        n_held_out = sum(int(part.sum()) for part in parts)
        if not 0 < n_held_out < n_rows:
            left = "which leaves none to train or none to test on; add rows or groups"
            share = f"{n_held_out:,} of {n_rows:,} rows would be held out"
            raise StudyError(f"{table.file}: {share}, {left}")
        return n_held_out

    def _chosen(self, keys: NDArray[Any]) -> BoolArray:
        return np.asarray(hash_uniform(keys, self.study.model.seed) <= self.limit)


class TrainingRows(LocalSource):
    """The other rows, encoded as they are read, for an estimator's ``fit``.

    Parameters
    ----------
    table : ChunkedTable
    encoder : Encoder
    held_out : HeldOutRows
    """

    n_rows = 0

    def __init__(self, table: ChunkedTable, encoder: data.Encoder, held_out: HeldOutRows) -> None:
        self.table, self.encoder, self.held_out = table, encoder, held_out
        self.n_rows = table.n_rows - held_out.count(table)
        self.features = tuple(encoder.features)
        self.targets = tuple(target.name for target in table.study.targets)

    def blocks(self, skip: int = 0) -> Iterator[Block]:
        """All blocks in their order, from the row number ``skip`` on."""
        for everyone, numbers in self.table.chunks(width=len(self.features)):
            table = everyone.where(~self.held_out.among(everyone, numbers))
            n_rows = len(table)
            if skip < n_rows:
                table = table.where(np.arange(n_rows) >= skip) if skip else table
                entries = data.read_entries(self.table.study, table)
                limits = data.limits_by_row(self.table.study, entries)
                X = self.encoder.matrix(table)
                yield Block(X, entries[0], None, *limits, table.file, int(table.lines[0]))
            skip = max(skip - n_rows, 0)


_MOST_VALUES = 10_000  # of a target, to fit the null model


def read_test_rows(
    other: TrainingRows, n_values: IntArray
) -> tuple[data.StudyData, CensoredTargets]:
    """Held-out rows, and targets of training rows for the null model.

    Rows without outcomes are left out. Large groups may hold out more than 10,000 rows, of which a
    random sample is read. Of the training rows about 10,000 values of every target are read, the
    others are missing.
    """
    table, encoder = other.table, other.encoder
    study, n_held_out = table.study, table.n_rows - other.n_rows
    tested, training, X = list[FloatArray](), list[FloatArray](), list[FloatArray]()
    for chunk, rows in table.chunks(width=len(encoder.features)):
        entries, is_held_out = data.read_entries(study, chunk), other.held_out.among(chunk, rows)
        random = hash_uniform(rows, study.model.seed + 1)
        known = ~np.isnan(entries[0])
        chosen = is_held_out & (random <= MOST_HELD_OUT / n_held_out) & known.any(axis=1)
        if chosen.any():
            tested.append(entries[:, chosen])
            X.append(encoder.matrix(chunk.where(chosen)))
        chosen_values = known & (random[:, None] <= _MOST_VALUES / n_values)
        chosen_values &= ~is_held_out[:, None]
        entries[0][~chosen_values] = np.nan
        training.append(entries[:, chosen_values.any(axis=1)])
    if not tested:
        raise StudyError(f"{table.file}: no held-out row has a target; add rows")

    features = pd.DataFrame(np.concatenate(X), columns=pd.Index(encoder.features))
    test, train = (data.as_targets(study, np.hstack(parts)) for parts in (tested, training))
    shown = Table(features, table.file, np.arange(len(features)))
    return data.StudyData(features, test, None, encoder, shown), train


def stream_study(
    study: Study,
    path: Path | TableFile,
    *,
    progress: Passes = lambda number, done, total: None,
    checkpoint: Path | None = None,
) -> FittedStudy:
    r"""Fit the model of a study to a table that is read some rows at a time.

    A first pass learns how columns become features. Then the network of :func:`make_network` is
    fitted to all rows except those held out at random: about 10,000, or a tenth if that is less;
    with groups, a tenth of the groups. A last pass reads held-out rows to test the model, which is
    not fitted again. Memory does not grow with the rows. Ids are not read, so that duplicates are
    not noticed.

    Parameters
    ----------
    study : Study
    path : Path or TableFile
        A table of any kind. Sheets and files of SPSS and Stata are held in memory as they are
        stored; all others are not.
    progress : callable, optional
        Called with the number of the pass, how many rows it has read, and of how many.
    checkpoint : Path, optional
        A file that stores the state of the fit. If it exists, the fit resumes from it.

    Examples
    --------
    >>> import pandas as pd
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.app.study import read_study
    >>> rng = np.random.default_rng(0)
    >>> age = rng.normal(70.0, 8.0, size=2000)
    >>> MMSE = np.clip(np.round(29.0 - 0.3 * (age - 70.0) + rng.normal(size=2000)), 0, 30)
    >>> with TemporaryDirectory() as folder:
    ...     pd.DataFrame({"age": age, "MMSE": MMSE}).to_parquet(Path(folder, "a.parquet"))
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text(
    ...         'data.file = "a.parquet"\ntargets.MMSE = {lower = 0, upper = 30}\n'
    ...         'model.members = ["stack"]'
    ...     )
    ...     fitted = stream_study(read_study(path), Path(folder, "a.parquet"))
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
    with as_study_error(f"{table.file}: the model cannot be fitted: "):
        encoder, n_values, groups = read_first_pass(table)
        rows = TrainingRows(table, encoder, HeldOutRows.choose(study, table.n_rows, groups))
        with one_blas_thread(), warnings.catch_warnings(record=True, action="always") as caught:
            resume = checkpoint is not None and checkpoint.exists()
            network.fit(rows, checkpoint=checkpoint, resume=resume)
        sample, training = read_test_rows(rows, n_values)
    seconds = f"{perf_counter() - started:.1f}"
    tested = predict_test_rows(network, sample, training, study.evaluation.coverage)
    history = network.history_
    facts = {
        "solver": f"{history['solver']}: {history['reason']}",
        "streamed": f"{rows.n_rows:,} of {table.n_rows:,} rows in {table.n_passes} passes",
        "seconds": seconds,
    }
    return describe_fit(
        study,
        network,
        sample,
        held_out=tested,
        findings=(*diagnose(study, sample, ("bound", "collinear")), *as_findings(caught)),
        facts=facts,
        n_rows=table.n_rows,
        n_groups=None if groups is None else groups.n_groups,
        subgroups=measure_parts(tested, sample.X, encoder),
    )
