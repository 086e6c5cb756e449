"""``table-real-layers``: Table 5 of the paper, on HELP or ADNI."""

from __future__ import annotations

from deeptobit.experiments.reproduce._comparison import Comparison, compare
from deeptobit.experiments.reproduce._comparison_claims import claim_ahead
from deeptobit.experiments.reproduce._comparison_tables import table_by_share
from deeptobit.experiments.reproduce._context import Context
from deeptobit.experiments.reproduce._paper_values import REAL_LAYERS
from deeptobit.experiments.reproduce._protocol import how_chosen, how_split, protocol_of
from deeptobit.experiments.reproduce._real import about, network_grid, network_method, real_data
from deeptobit.experiments.reproduce._scales import Scale
from deeptobit.experiments.reproduce._section import Section
from deeptobit.experiments.reproduce._synthetic import grown

_TEXT = """{about}

Networks of rank {rank} and a grid of penalties. Growth adds layer after layer, each to its \
optimum, as in the paper, and keeps one where it gains more log likelihood than it has \
parameters; our defaults then tune all layers together, where that pays. {split} {choice}"""


def table_real_layers(scale: Scale, context: Context) -> Section:
    """Networks of several depths on a real cohort."""
    data, protocol = real_data(context), protocol_of(scale, context)
    rank, depths = scale.real_rank, scale.real_layers
    by_growth = {depth: f"grown, {depth} layer(s)" for depth in depths}
    tuned = {depth: f"our defaults (tuned), {depth} layer(s)" for depth in depths[1:]}
    methods = {
        "grown": grown(network_grid(rank=rank, joint_tuning=False), by_growth),
        **{row: network_method(row, rank=rank, n_layers=depth) for depth, row in tuned.items()},
    }
    results = compare(
        Comparison("table-real-layers", data, methods, protocol, context.protocol), context
    )
    first, last = by_growth[depths[0]], by_growth[depths[-1]]
    table = table_by_share(
        results,
        f"ANMSE on {data.name} by depth, beside Table 5 (ADNI)",
        paper={by_growth[depth]: REAL_LAYERS[depth] for depth in depths},
        reference=first,
    )
    paper = (
        "Table 5: from 0.2016 with one layer to 0.1977 with ten at 40 %, 0.1970 to 0.1953 at 80 %."
    )
    claims = (
        claim_ahead(
            results,
            [(last, first)],
            text=f"A network grown to {depths[-1]} layers is ahead of one layer.",
            paper=paper,
        ),
        claim_ahead(
            results,
            [(row, first) for row in tuned.values()],
            text="Networks that are tuned together are ahead of one layer, at every depth.",
            paper="The paper does not tune layers together.",
        ),
    )
    text = _TEXT.format(
        about=about(data),
        rank=rank,
        split=how_split(protocol),
        choice=how_chosen(context.protocol),
    )
    title = f"Depth on {data.name}"
    return Section("table-real-layers", title, text, tables=(table,), claims=claims)
