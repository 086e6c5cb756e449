from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks.race.data import DATA, read_study_data
from benchmarks.race.trial import draw_trials
from tests.benchmarks.race.toys import small_data

SHAPES = {
    "help": ((282, 46), 30),
    "licorice_gargle": ((139, 10), 10),
    "opt": ((474, 67), 12),
    "fastfood": ((309, 13), 7),
    "batting": ((719, 12), 6),
    "hfi": ((819, 66), 47),
    "nhefs": ((977, 52), 5),
    "gss_spending": ((1408, 11), 18),
    "bfi": ((1680, 18), 10),
    "mathpnl": ((2310, 8), 3),
    "nmes1988": ((2643, 16), 6),
    "randhie": ((5000, 18), 9),
    "baseball": ((5000, 13), 10),
    "weather": ((5000, 8), 4),
    "cohort": ((402, 138), 30),
    "cohort-nonlinear": ((402, 138), 30),
    "subspace": ((480, 40), 15),
    "subspace-deep": ((480, 40), 15),
    "wide": ((150, 250), 50),
}


@pytest.mark.parametrize("name", DATA)
def test_training_rows_are_in_standard_units(name: str) -> None:
    problem = next(iter(draw_trials(DATA[name](), 1))).problem
    assert (problem.X.shape, problem.Y.shape[1]) == SHAPES[name]
    assert_allclose(np.nanmean(problem.Y, axis=0), 0.0, atol=1e-10)
    assert_allclose(np.nanstd(problem.Y, axis=0), 1.0)
    assert np.isfinite(problem.X).all()
    assert np.nanmin(problem.upper - problem.Y) >= 0.0
    assert np.nanmin(problem.Y - problem.lower) == 0.0


def test_the_first_splits_are_the_same_however_many_there_are() -> None:
    few, many = (list(draw_trials(small_data(), count)) for count in (2, 5))
    for one, other in zip(few, many, strict=False):
        assert_allclose(one.X, other.X)


def test_a_study_can_take_part(tmp_path: Path) -> None:
    rows = [f"{age},{min(30, 80 - age + age % 3)}" for age in range(45, 75)]
    (tmp_path / "a.csv").write_text("\n".join(["age,MMSE", *rows]))
    path = tmp_path / "clinic.toml"
    path.write_text('[data]\nfile = "a.csv"\n[targets.MMSE]\nlower = 0\nupper = 30')
    data = read_study_data(path)
    assert (data.name, data.X.shape, data.targets.upper.tolist()) == ("clinic", (30, 1), [30.0])
