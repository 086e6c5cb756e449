"""The rows of a table beyond memory that a model is fitted to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deeptobit.scale import Block, LocalSource
from deeptobit.study._chunks import Chunk, ChunkedTable
from deeptobit.study._encoding import Encoder
from deeptobit.study._file import Study
from deeptobit.study._held_rows import HeldRows
from deeptobit.study._outcomes import limits_by_row, read_entries


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
