"""What is said of a subspace does not depend on coordinates, where it should not."""

import numpy as np
import pytest

from paper.recovery import PAPER, Chance, chance, chance_claim, compare


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def level() -> Chance:
    return chance(100, 10, seed=1)


def test_a_change_of_coordinates_moves_the_papers_measures_alone(rng: np.random.Generator) -> None:
    U, change = rng.standard_normal((30, 4)), rng.standard_normal((4, 4))
    same, moved = compare(U, U), compare(U, U @ change)
    assert moved.smallest_cosine == pytest.approx(same.smallest_cosine) == pytest.approx(1.0)
    assert same[:3] == pytest.approx((0.0, 1.0, 1.0), abs=1e-12)
    assert moved.difference > 0.5 * np.linalg.norm(U) / U.size
    assert moved.mean < 0.9


def test_coherence_is_the_correlation_of_matching_rows(rng: np.random.Generator) -> None:
    U, learned = rng.standard_normal((2, 30, 4))
    expected = [abs(np.corrcoef(*pair)[0, 1]) for pair in zip(U, learned, strict=True)]
    found = compare(U, learned)
    assert found[1:3] == pytest.approx((max(expected), np.mean(expected)))
    assert compare(U, -5.0 * learned + 2.0)[1:3] == pytest.approx(found[1:3])


def test_an_estimate_of_zeros_is_better_than_an_unrelated_one_in_the_papers_difference(
    level: Chance, rng: np.random.Generator
) -> None:
    U = rng.standard_normal((100, 10))
    assert compare(U, 0.0 * U).difference == pytest.approx(0.0316, abs=0.002)
    assert level.mean.difference == pytest.approx(np.sqrt(2.0) * 0.0316, rel=0.01)


def test_a_divergence_has_no_measure(rng: np.random.Generator) -> None:
    found = compare(rng.standard_normal((5, 3)), np.full((5, 3), np.inf))
    assert found == (np.inf, 0.0, 0.0, 0.0, 0.0)


def test_chance_levels(level: Chance) -> None:
    assert level.mean[1:3] == pytest.approx((0.784, 0.274), abs=0.005)
    assert level.low[1:3] == pytest.approx((0.667, 0.237), abs=0.01)
    assert level.high[1:3] == pytest.approx((0.908, 0.311), abs=0.01)


def test_the_papers_table_is_chance(level: Chance, monkeypatch: pytest.MonkeyPatch) -> None:
    found = chance_claim(level)
    assert found.verdict == "holds"
    assert found.test.startswith("18 of 18")
    monkeypatch.setitem(PAPER, (3, "SN"), (0.0312, 0.95, 0.2586))
    found = chance_claim(level)
    assert found.verdict == "does not hold"
    assert found.test.startswith("17 of 18")
