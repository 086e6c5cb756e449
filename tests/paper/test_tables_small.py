"""What the tables claim, at small scale."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import pytest

from paper.methods import CENSORED_AND_TWIN
from paper.real import (
    MEAN,
    NULL,
    table_calibration,
    table_rank,
    table_real,
    table_real_layers,
)
from paper.recipes import CHOSEN, OURS, PRINTED, at_depth
from paper.section import SMALL, Claim, Context, Scale, Section
from paper.synthetic import DEFAULTS, FALLING, ONE_PASS, ORACLE, table_layers, table_synthetic

TABLES = [
    table_synthetic,
    table_layers,
    table_real,
    table_real_layers,
    table_rank,
    table_calibration,
]
TINY = replace(
    SMALL,
    n_samples=200,
    n_features=6,
    n_tasks=4,
    rank=1,
    repeats=2,
    train_shares=(0.6,),
    layers=(1, 2),
    real_layers=(1, 2),
    real_ranks=(1, 5),
    calibration_layers=2,
)


ROWS = (PRINTED, CHOSEN, OURS)


def _claims(section: Section) -> dict[str, Claim]:
    """Those that are tested once."""
    return {claim.text: claim for claim in section.claims if not claim.row}


def _values(section: Section, table: int, column: str) -> dict[str, float]:
    frame = section.tables[table].frame
    return {
        row: float(str(cell).split()[0])
        for row, cell in zip(frame["method"], frame[column], strict=True)
    }


@pytest.mark.slow
@pytest.mark.parametrize("make", TABLES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("protocol", ["honest", "paper"])
def test_every_table_is_made(
    make: Callable[[Scale, Context], Section], protocol: Literal["honest", "paper"]
) -> None:
    section = make(TINY, Context(protocol=protocol))
    assert section.name == make.__name__.replace("_", "-")
    assert section.tables
    assert all(len(table.frame) >= 3 for table in section.tables)
    assert all("nan" not in cell for table in section.tables for cell in table.frame["60%"])
    assert all(claim.ours and "t-test" in claim.test for claim in section.claims)
    texts = {claim.text for claim in section.claims if claim.row and claim.by == "the paper"}
    tested = {text: [c.row for c in section.claims if c.text == text] for text in texts}
    assert texts
    assert set(map(tuple, tested.values())) == {ROWS}
    lines = section.tables[0].frame["method"]
    assert all(lines.str.startswith(row).any() for row in ROWS)
    assert "Features" in section.text  # and how they are scaled
    rows = "test rows" if protocol == "paper" else "training rows"
    for table in section.tables:
        assert f"splits = 2 at 60% · chosen on = {rows} · seed = 0" in table.settings


def test_each_table_of_a_section_has_its_own_settings() -> None:
    one, two = (table.settings for table in table_layers(TINY, Context(seed=3)).tables)
    # The first has as many entries per parameter as the paper, the second is always of one size.
    assert one.startswith("data = one layer · N = 417 · D = 6 · T = 4 · R = 1 · σ = 0.164 · ")
    assert two.startswith("data = two layers · N = 200 · D = 40 · T = 20 · R = 6 · σ = 1 · ")
    assert two.endswith("seed = 3")


@pytest.mark.slow
def test_synthetic_claims() -> None:
    section = table_synthetic(SMALL, Context(n_jobs=2))
    claims = _claims(section)
    near = "Our defaults err at most 1.05 times as much as the true U and V."
    assert claims[near].verdict == "holds"
    ours = {claim.verdict for claim in section.claims if claim.by == "us" or claim.row == OURS}
    assert "does not hold" not in ours
    for share in ("40%", "80%"):
        errors = _values(section, 0, share)
        assert errors[DEFAULTS] <= 1.05 * errors[ORACLE]
        assert min((error, row) for row, error in errors.items() if row != ORACLE)[1] == DEFAULTS
        assert errors[at_depth(CHOSEN, 3)] < errors[at_depth(PRINTED, 3)]
        assert errors[ONE_PASS] < errors["DNN iii"]
        for censored, twin in CENSORED_AND_TWIN:
            assert errors[censored] < errors[twin]


@pytest.mark.slow
def test_layers_claims() -> None:
    section = table_layers(SMALL, Context(n_jobs=2))
    assert {claim.verdict for claim in section.claims if claim.by == "us"} == {"holds"}
    verdicts = [claim.verdict for claim in section.claims if claim.row == OURS]
    assert verdicts == ["does not hold", "holds"]  # on a truth of one layer, and of two
    for share in ("40%", "80%"):
        errors = _values(section, 0, share)
        # Depth gains something as printed, and further passes of one layer gain more.
        one, three = (errors[at_depth(PRINTED, n)] for n in (1, 3))
        assert one > three > errors[FALLING] > errors[at_depth(OURS, 1)]


@pytest.mark.slow
def test_real_claims() -> None:
    section = table_real(SMALL, Context(n_jobs=2))
    claims = _claims(section)
    better = "E[y|x] is a better prediction than the clipped score of the same network."
    assert claims[better].verdict == "holds"
    for share in ("40%", "80%"):
        errors = _values(section, 1, share)
        assert errors[MEAN] < errors[at_depth(OURS, 3)] < errors[at_depth(PRINTED, 3)]
        assert errors[MEAN] < errors[NULL]
        assert errors[MEAN] == min(errors.values())


@pytest.mark.slow
def test_depth_gains_nothing_on_a_small_cohort() -> None:
    section = table_real_layers(SMALL, Context(n_jobs=2))
    assert {claim.verdict for claim in section.claims} <= {"cannot be told", "does not hold"}


@pytest.mark.slow
def test_too_low_a_rank_costs() -> None:
    section = table_rank(SMALL, Context(n_jobs=2))
    for share in ("40%", "80%"):
        errors = _values(section, 0, share)
        for row in ROWS:
            assert errors[f"{row}, R = 5"] < errors[f"{row}, R = 1"]


@pytest.mark.slow
def test_calibration_gains_little_as_printed_and_more_in_ours() -> None:
    section = table_calibration(SMALL, Context(n_jobs=2))
    for share in ("40%", "80%"):
        errors = _values(section, 0, share)
        ratio = {
            row: errors[f"{row}, calibrated"] / errors[f"{row}, one σ for all"] for row in ROWS
        }
        assert 0.99 < ratio[PRINTED] < 1.0
        assert 0.99 < ratio[CHOSEN] < 1.0
        assert ratio[OURS] < 0.95
