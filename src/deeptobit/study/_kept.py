"""The rows of a table beyond memory that stay in memory, because the model is judged by them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.study._chunks import ChunkedTable
from deeptobit.study._errors import StudyError
from deeptobit.study._file import Study
from deeptobit.study._held_rows import MOST_HELD_OUT, HeldRows
from deeptobit.study._lots import draw_lots
from deeptobit.study._outcomes import Entries, read_entries, targets_of
from deeptobit.study._survey import Survey
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    import pandas as pd

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
