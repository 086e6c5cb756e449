"""Tables of a comparison, the paper's values beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from deeptobit.experiments.reproduce._paper_values import PaperRow
from deeptobit.experiments.reproduce._section import TableOf

if TYPE_CHECKING:
    import pandas as pd

_NOTHING = "–"


def table_by_share(
    results: pd.DataFrame,
    caption: str,
    *,
    paper: Mapping[str, PaperRow],
    reference: str,
    paper_reference: str | None = None,
    measure: str = "anmse",
) -> TableOf:
    """Rows in the order of ``results``, shares in columns: mean (standard deviation) over repeats.

    Parameters
    ----------
    results : DataFrame
        Of :func:`compare`.
    caption : str
    paper : mapping
        Its rows by the names of ours; empty for tables without any.
    reference : str
        The row that the others are divided by in the column of ratios: the mean over shares.
    paper_reference : str, optional
        The same for the paper's rows; ``reference`` by default.
    measure : {"anmse", "centred_anmse"}
    """
    import pandas as pd

    cells = results.groupby(["row", "share"], sort=False)[measure].agg(["mean", "std"])
    rows = list(dict.fromkeys(results["row"]))
    shares = list(dict.fromkeys(results["share"]))
    table: dict[str, list[str]] = {"method": rows}
    for share in shares:
        table[f"{share:.0%}"] = [_cell(*cells.loc[(row, share)]) for row in rows]
        if paper:
            table[f"{share:.0%}, paper"] = [_paper_cell(paper.get(row), share) for row in rows]
    errors = results.pivot(index=["share", "repeat"], columns="row", values=measure)
    table[f"over {reference}"] = [_ratio(errors[row], errors[reference]) for row in rows]
    if paper:
        base = paper[paper_reference or reference]
        table[f"paper, over {paper_reference or reference}"] = [
            _paper_ratio(paper.get(row), base, shares) for row in rows
        ]
    return TableOf(caption, pd.DataFrame(table), results)


def seconds_of_methods(results: pd.DataFrame) -> str:
    """How long methods took, in a sentence."""
    each = results.drop_duplicates(["share", "repeat", "method"])
    mean = each.groupby("method", sort=False)["seconds"].mean()
    listed = ", ".join(f"{name} {seconds:.1f}" for name, seconds in mean.items())
    return f"Mean seconds of a method on one core, its whole grid included: {listed}."


def _ratio(errors: pd.Series[float], reference: pd.Series[float]) -> str:
    """Mean over shares of the ratio of mean errors, over the repeats that both rows have."""
    both = errors.notna() & reference.notna()
    means, references = (one[both].groupby("share").mean() for one in (errors, reference))
    return f"{(means / references).mean():.3f}"


def _cell(mean: float, spread: float) -> str:
    return f"{mean:.4f}" if np.isnan(spread) else f"{mean:.4f} ({spread:.4f})"


def _paper_cell(row: PaperRow | None, share: float) -> str:
    return _NOTHING if row is None or share not in row else _cell(*row[share])


def _paper_ratio(row: PaperRow | None, base: PaperRow, shares: Sequence[float]) -> str:
    stated = [share for share in shares if row is not None and share in row]
    if row is None or not stated:
        return _NOTHING
    return f"{np.mean([row[share][0] / base[share][0] for share in stated]):.3f}"
