"""Fit a study to a table that does not fit in memory, and test it on held-out rows."""

import warnings
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd

from deeptobit.app.study import chunks
from deeptobit.app.study.config import Study, settings_text
from deeptobit.app.study.data import Entries, as_targets, limits_by_row, read_entries
from deeptobit.app.study.doctor import Finding, find_collinear, find_missing_bounds
from deeptobit.app.study.encoding import Encoder
from deeptobit.app.study.errors import StudyError
from deeptobit.app.study.fitted import FittedStudy, HeldOut, predict_rows, versions
from deeptobit.app.study.fitting import as_findings, make_network, predict_null
from deeptobit.arrays import FloatArray
from deeptobit.estimators import SubspaceNetworkRegressor
from deeptobit.runtime import one_blas_thread
from deeptobit.scale import Block, LocalSource
from deeptobit.targets import CensoredTargets

_MOST_VALUES = 10_000  # of a target, to fit the null model


def read_test_rows(
    study: Study,
    table: chunks.ChunkedTable,
    first: chunks.FirstPass,
    held_out: chunks.HeldOutRows,
    n_held_out: int,
) -> tuple[pd.DataFrame, CensoredTargets, CensoredTargets]:
    """Features and targets of held-out rows, and targets of training rows for the null model.

    Rows without outcomes are left out. Large groups may hold out more than 10,000 rows, of which a
    random sample is read. Of the training rows about 10,000 values of every target are read, the
    others are missing.
    """
    encoder = first.encoder
    tested, training, X = list[Entries](), list[Entries](), list[FloatArray]()
    for chunk in table.chunks(width=len(encoder.features)):
        entries, is_held_out = read_entries(study, chunk.table), held_out.among(chunk)
        random = chunks.hash_uniform(chunk.rows, study.model.seed + 1)
        known = ~np.isnan(entries.values)
        chosen = is_held_out & (random <= chunks.MOST_HELD_OUT / n_held_out) & known.any(axis=1)
        if chosen.any():
            tested.append(Entries(*(part[chosen] for part in entries)))
            X.append(encoder.matrix(chunk.where(chosen).table))
        chosen_values = known & (random[:, None] <= _MOST_VALUES / first.n_values)
        chosen_values &= ~is_held_out[:, None]
        some, values = chosen_values.any(axis=1), np.where(chosen_values, entries.values, np.nan)
        training.append(Entries(values[some], entries.lower[some], entries.upper[some]))
    if not tested:
        raise StudyError(f"{table.file}: no held-out row has a target; add rows")
    return (
        pd.DataFrame(np.concatenate(X), columns=pd.Index(encoder.features)),
        as_targets(study, _joined(tested)),
        as_targets(study, _joined(training)),
    )


def _joined(parts: Iterable[Entries]) -> Entries:
    return Entries(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


class TrainingRows(LocalSource):
    """The other rows, encoded as they are read, for an estimator's ``fit``.

    Parameters
    ----------
    study : Study
    table : ChunkedTable
    encoder : Encoder
    held_out : HeldOutRows
    n_rows : int
        Number of rows of the table that are not held out.
    """

    def __init__(
        self,
        study: Study,
        table: chunks.ChunkedTable,
        encoder: Encoder,
        held_out: chunks.HeldOutRows,
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
                table = (chunk.where(np.arange(n_rows) >= skip) if skip else chunk).table
                entries = read_entries(self._study, table)
                limits = limits_by_row(self._study, entries)
                X = self._encoder.matrix(table)
                first = int(table.lines[0])
                yield Block(X, entries.values, None, *limits, table.file, first)
            skip = max(skip - n_rows, 0)


def stream_study(
    study: Study,
    path: Path,
    *,
    progress: chunks.Passes = lambda number, done, total: None,
    checkpoint: Path | None = None,
) -> FittedStudy:
    r"""Fit the model of a study to a Parquet table that is read some rows at a time.

    A first pass learns how columns become features. Then the network of :func:`make_network` is
    fitted to all rows except those held out at random: about 10,000, or a tenth if that is less;
    with groups, a tenth of the groups. A last pass reads held-out rows to test the model, which is
    not fitted again. Memory does not grow with the rows. Ids are not read, so that duplicates are
    not noticed.

    Parameters
    ----------
    study : Study
    path : Path
        A Parquet file or a folder of them.
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
    table = chunks.ChunkedTable(study, path, progress)
    try:
        first = chunks.read_first_pass(study, table)
        held_out = chunks.HeldOutRows.choose(study, table.n_rows, first.groups)
        n_held_out = held_out.count(table)
        n_training = table.n_rows - n_held_out
        rows = TrainingRows(study, table, first.encoder, held_out, n_training)
        with one_blas_thread(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            resume = checkpoint is not None and checkpoint.exists()
            network.fit(rows, checkpoint=checkpoint, resume=resume)
        X, targets, training = read_test_rows(study, table, first, held_out, n_held_out)
    except StudyError:
        raise
    except ValueError as error:
        raise StudyError(f"{table.file}: the model cannot be fitted: {error}") from error
    seconds = perf_counter() - started
    history = network.history_
    facts = {
        "solver": f"{history['solver']}: {history['reason']}",
        "streamed": f"{n_training:,} of {table.n_rows:,} rows in {table.n_passes} passes",
        "rows per second": f"{table.n_passes * table.n_rows / seconds:,.0f}",
        "seed": study.model.seed,
        "date": date.today(),
        "seconds": f"{seconds:.1f}",
    }
    return FittedStudy(
        model=network,
        encoder=first.encoder,
        name=study.source.path.stem,
        text=settings_text(study),
        held_out=_test(network, X, targets, training, study.evaluation.coverage),
        findings=(*_find(study, first.encoder, X, targets), *as_findings(caught)),
        n_groups=None if first.groups is None else first.groups.n_groups,
        facts=versions() | {name: str(fact) for name, fact in facts.items()},
        n_rows=table.n_rows,
    )


def _test(
    network: SubspaceNetworkRegressor,
    X: pd.DataFrame,
    targets: CensoredTargets,
    training: CensoredTargets,
    coverage: float,
) -> HeldOut:
    """Predictions of the network and of the null model for held-out rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit has warned of what concerns all rows
        null = predict_null(network.noise_, training, targets)
    stages = network.staged_predict(X, lower=targets.entry_lower, upper=targets.entry_upper)
    predictive = predict_rows(network, X, targets.lower_bounds, targets.upper_bounds)
    return HeldOut(targets, predictive, null, tuple(stages), coverage)


def _find(
    study: Study, encoder: Encoder, X: pd.DataFrame, targets: CensoredTargets
) -> Iterator[Finding]:
    """What a sample of the rows can show: bounds that are not declared, features that repeat."""
    observed = np.where(targets.observed, targets.low, np.nan)
    for target, values in zip(study.targets, observed.T, strict=True):
        yield from find_missing_bounds(target, values)
    yield from find_collinear(X, encoder)
