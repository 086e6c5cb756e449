"""The first pass over a table beyond memory: what its columns, targets and groups are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deeptobit.study._build import USELESS, read_groups, useless
from deeptobit.study._chunks import ChunkedTable
from deeptobit.study._columns import categorical_columns
from deeptobit.study._encoding import Encoder
from deeptobit.study._file import Study
from deeptobit.study._folds import check_values
from deeptobit.study._lots import SmallestLots, draw_lots
from deeptobit.study._outcomes import read_entries
from deeptobit.study._tally import ColumnTally, encoder_of


@dataclass(frozen=True, eq=False)
class Survey:
    """What all rows of a table say together.

    Parameters
    ----------
    encoder : Encoder
        The one that the table would teach in memory.
    known : array of shape (T,)
        Number of values of every target.
    groups : SmallestLots or None
    """

    encoder: Encoder
    known: NDArray[np.int64]
    groups: SmallestLots | None


def survey_table(study: Study, table: ChunkedTable) -> Survey:
    """Read every cell once; what is wrong with one is said before any model is fitted."""
    declared = categorical_columns(study, table)
    tallies = {name: ColumnTally(name, declared=name in declared) for name in table.features}
    known = np.zeros(len(study.targets), dtype=np.int64)
    groups = None
    for chunk in table.chunks():
        for tally in tallies.values():
            tally.add(chunk.table)
        known += (~np.isnan(read_entries(study, chunk.table).values)).sum(axis=0)
        labels = read_groups(study, chunk.table)
        if labels is not None:
            lots = draw_lots(labels, study.model.seed)
            groups = (groups or SmallestLots(np.zeros(0))).more(lots)
    check_values(study, known)
    for name, tally in tallies.items():
        if tally.kind in USELESS:
            raise useless(study, name, tally.kind, tally.example)
    return Survey(encoder_of(tallies, study.features.missing, table.file), known, groups)
