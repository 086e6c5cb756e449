"""From a study whose table is beyond memory to its model, and to numbers on rows held out."""

from __future__ import annotations

import warnings
from datetime import date
from pathlib import Path
from time import perf_counter

import numpy as np

from deeptobit.estimators import SubspaceNetworkRegressor
from deeptobit.study._chunks import ChunkedTable, Passes
from deeptobit.study._diagnose import dependence, unbounded
from deeptobit.study._errors import StudyError
from deeptobit.study._file import Study
from deeptobit.study._finding import Finding
from deeptobit.study._fitted import FittedStudy
from deeptobit.study._held_out import HeldOut
from deeptobit.study._held_rows import HeldRows
from deeptobit.study._kept import KeptRows, keep_rows
from deeptobit.study._model import make_network
from deeptobit.study._null import predict_null
from deeptobit.study._predictive import predict_rows
from deeptobit.study._settings_text import settings_text
from deeptobit.study._survey import Survey, survey_table
from deeptobit.study._training_rows import TrainingRows
from deeptobit.study._versions import versions
from deeptobit.threads import one_blas_thread


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
    ...         "model.max_layers = 1"
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
