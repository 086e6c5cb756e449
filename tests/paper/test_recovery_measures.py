"""What is said of a subspace does not depend on coordinates, where it should not."""

import numpy as np
import pytest

from paper.recovery import chance, compare


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_a_change_of_coordinates_moves_the_papers_measures_alone(rng: np.random.Generator) -> None:
    U, change = rng.standard_normal((30, 4)), rng.standard_normal((4, 4))
    same, moved = compare(U, U), compare(U, U @ change)
    assert moved.smallest_cosine == pytest.approx(same.smallest_cosine) == pytest.approx(1.0)
    assert same.difference == pytest.approx(0.0, abs=1e-12)
    assert moved.difference > 0.5
    assert moved.mean != pytest.approx(same.mean, rel=1e-3)


def test_the_size_of_the_estimate_does_not_matter(rng: np.random.Generator) -> None:
    U, learned = rng.standard_normal((2, 30, 4))
    assert compare(U, 1e6 * learned) == pytest.approx(compare(U, learned))


def test_chance_is_where_theory_puts_it() -> None:
    found = chance(100, 10, seed=1)
    assert found.difference == pytest.approx(np.sqrt(2.0), rel=0.01)
    assert found.mean == pytest.approx(0.08, abs=0.005)
    assert chance(10, 10, seed=1).maximum == pytest.approx(0.757, abs=0.03)


def test_a_rotation_within_the_span_has_the_coherence_of_square_matrices(
    rng: np.random.Generator,
) -> None:
    U = np.linalg.qr(rng.standard_normal((100, 10)))[0]
    turned = [U @ np.linalg.qr(rng.standard_normal((10, 10)))[0] for _ in range(50)]
    means = [compare(U, learned).mean for learned in turned]
    assert np.mean(means) == pytest.approx(chance(10, 10, seed=0).mean, abs=0.01)


def test_the_papers_table_is_that_of_arbitrary_bases() -> None:
    from paper.recovery import PAPER

    square = chance(10, 10, seed=0)
    maxima, means = np.array([(paper[1], paper[2]) for paper in PAPER.values()]).T
    assert abs(maxima.mean() - square.maximum) < 0.05
    assert abs(means.mean() - square.mean) < 0.03
