"""``table-rank``: Table 7 of the paper, on HELP or ADNI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deeptobit.experiments.reproduce._comparison import Comparison, compare
from deeptobit.experiments.reproduce._comparison_claims import claim_ahead
from deeptobit.experiments.reproduce._comparison_tables import table_by_share
from deeptobit.experiments.reproduce._context import Context
from deeptobit.experiments.reproduce._paper_values import DNN_RANKS, SN_RANKS
from deeptobit.experiments.reproduce._protocol import how_chosen, how_split, protocol_of
from deeptobit.experiments.reproduce._real import about, network_method, real_data, with_mean
from deeptobit.experiments.reproduce._rivals import dnn_iii
from deeptobit.experiments.reproduce._scales import Scale
from deeptobit.experiments.reproduce._section import Claim, Section

if TYPE_CHECKING:
    import pandas as pd

_TEXT = """{about}

SN of three layers with a grid of penalties, and the factorised network DNN iii, at the same \
ranks. A penalty that is chosen makes the rank matter less: it shrinks directions that are not \
needed. {split} {choice}"""


def table_rank(scale: Scale, context: Context) -> Section:
    """SN and DNN iii at several ranks."""
    data, protocol = real_data(context), protocol_of(scale, context)
    ranks = scale.real_ranks
    methods = {
        **{_sn(rank): network_method(_sn(rank), rank=rank, n_layers=3) for rank in ranks},
        **{_dnn(rank): dnn_iii(rank, _dnn(rank), context) for rank in ranks},
    }
    results = compare(Comparison("table-rank", data, methods, protocol, context.protocol), context)
    table = table_by_share(
        results,
        f"ANMSE on {data.name} by rank, beside Table 7 (ADNI)",
        paper={_sn(rank): SN_RANKS[rank] for rank in ranks}
        | {_dnn(rank): DNN_RANKS[rank] for rank in ranks},
        reference=_sn(scale.real_rank),
    )
    text = _TEXT.format(
        about=about(data), split=how_split(protocol), choice=how_chosen(context.protocol)
    )
    return Section(
        "table-rank",
        f"Ranks on {data.name}",
        text,
        tables=(table,),
        claims=_claims(results, scale),
    )


def _sn(rank: int) -> str:
    return f"SN, R = {rank}"


def _dnn(rank: int) -> str:
    return f"DNN iii, R = {rank}"


def _claims(results: pd.DataFrame, scale: Scale) -> tuple[Claim, ...]:
    best = _sn(scale.real_rank)
    return (
        claim_ahead(
            results,
            [(_sn(rank), _dnn(rank)) for rank in scale.real_ranks],
            text="SN is ahead of DNN iii at every rank.",
            paper="Table 7: 0.2052 against 0.2322 at R = 1, 0.1981 against 0.2113 at R = 5 (40 %).",
        ),
        claim_ahead(
            results,
            [(with_mean(_sn(rank)), _dnn(rank)) for rank in scale.real_ranks],
            text="SN, by E[y|x], is ahead of DNN iii at every rank.",
            paper="The paper predicts by the clipped score.",
        ),
        claim_ahead(
            results,
            [(best, _sn(rank)) for rank in scale.real_ranks if rank != scale.real_rank],
            text=f"Of the ranks, R = {scale.real_rank} has the lowest error of SN.",
            paper="Table 7: 0.2052, 0.1993, 0.1981 and 0.2010 at R = 1, 3, 5 and 10 (40 %).",
        ),
    )
