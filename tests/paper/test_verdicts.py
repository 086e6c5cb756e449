"""Verdicts come from a test that another library agrees with."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from paper.section import Claim, Verdict
from paper.verdicts import judged_claims, verdict_over_repeats

DIFFERENCES = st.lists(st.floats(-10.0, 10.0), min_size=2, max_size=12).filter(
    lambda values: np.std(values) > 1e-3
)


@given(DIFFERENCES)
def test_independent_repeats_give_the_t_test_of_scipy(values: list[float]) -> None:
    found = verdict_over_repeats(values)
    expected = ttest_1samp(values, 0.0).pvalue if np.mean(values) != 0.0 else 1.0
    assert found.p_value == pytest.approx(expected, rel=1e-8, abs=1e-12)


@given(DIFFERENCES, st.floats(0.0, 2.0))
def test_the_opposite_claim_has_the_opposite_verdict(values: list[float], ratio: float) -> None:
    opposite = {
        "holds": "does not hold",
        "does not hold": "holds",
        "cannot be told": "cannot be told",
    }
    found = verdict_over_repeats(values, test_to_train=ratio)
    turned = verdict_over_repeats([-value for value in values], test_to_train=ratio)
    assert turned.verdict == opposite[found.verdict]
    assert turned.p_value == found.p_value


@given(DIFFERENCES, st.floats(0.01, 2.0))
def test_shared_data_make_a_test_more_careful(values: list[float], ratio: float) -> None:
    corrected = verdict_over_repeats(values, test_to_train=ratio)
    assert corrected.p_value >= verdict_over_repeats(values).p_value
    assert corrected.test.startswith("corrected resampled t-test")


def test_the_correction_is_that_of_nadeau_and_bengio() -> None:
    values = np.array([0.1, 0.3, 0.2, 0.4, 0.25])
    factor = np.sqrt((1.0 / 5.0 + 0.25) / (1.0 / 5.0))
    # The same t as an independent test whose spread is larger by that factor.
    wider = values.mean() + (values - values.mean()) * factor
    found = verdict_over_repeats(values, test_to_train=0.25)
    assert found.p_value == pytest.approx(ttest_1samp(wider, 0.0).pvalue)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([1.0, 1.0, 1.0], "holds"),
        ([-1.0, -1.0], "does not hold"),
        ([0.0, 0.0, 0.0], "cannot be told"),
        ([5.0], "cannot be told"),
        ([1.0, np.nan, 2.0], "cannot be told"),
        ([1.0, -1.0], "cannot be told"),
    ],
)
def test_what_has_no_spread_or_no_size(values: list[float], verdict: str) -> None:
    assert verdict_over_repeats(values).verdict == verdict


def test_chance_alone_seldom_holds() -> None:
    rng = np.random.default_rng(0)
    found = [verdict_over_repeats(rng.standard_normal(5)).verdict for _ in range(2000)]
    assert 0.035 < np.mean([verdict != "cannot be told" for verdict in found]) < 0.065


YES: Verdict = "holds"
NO: Verdict = "does not hold"
OPEN: Verdict = "cannot be told"


@pytest.mark.parametrize(
    ("verdicts", "summary"),
    [
        ([YES, YES, YES], "holds"),
        ([NO, NO, NO], "does not hold"),
        ([OPEN, OPEN, OPEN], "cannot be told"),
        ([NO, YES, YES], "holds only with b and c"),
        ([YES, OPEN, NO], "holds only with a"),
        ([NO, OPEN, NO], "cannot be told"),
    ],
)
def test_rows_of_a_claim_have_one_verdict_together(verdicts: list[Verdict], summary: str) -> None:
    rows = zip("abc", verdicts, strict=True)
    claims = [Claim("text", "", "", verdict, "", row=row) for row, verdict in rows]
    other = Claim("text", "", "", NO, "", by="us")
    (judged,) = judged_claims([*claims, other], "the paper")
    assert judged.verdict == summary
    assert judged.rows == tuple(claims)
    assert [one.verdict for one in judged_claims([*claims, other], "us")] == [NO]
