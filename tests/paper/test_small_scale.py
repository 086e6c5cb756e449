"""Every section at small scale: the claims have the verdicts that the page tells."""

import numpy as np
import pytest

from paper.registry import reproduce
from paper.section import SMALL, Context, Section


def verdicts(section: Section) -> dict[str, str]:
    return {claim.text: claim.verdict for claim in section.claims}


def settings(section: Section) -> set[str]:
    of_tables = {table.settings for table in section.tables}
    return of_tables | {figure.settings for figure in section.figures}


def test_fig_weights() -> None:
    section = reproduce("fig-weights", SMALL, Context())
    assert set(verdicts(section).values()) == {"holds"}
    ours, papers = (figure.data["correlations"] for figure in section.figures)
    assert ours.shape == (SMALL.repeats * SMALL.n_tasks,)
    assert ours.min() > 0.98 > papers.min()


def test_theory() -> None:
    section = reproduce("theory", SMALL, Context())
    assert len(section.claims) == 4
    assert set(verdicts(section).values()) == {"holds"}
    expected = "N = 1000 · D = 40 · T = 20 · R = 3 · σ = 3 · data sets = 5 · seed = 0"
    assert settings(section) == {expected}


@pytest.mark.slow
def test_fig_subspace() -> None:
    section = reproduce("fig-subspace", SMALL, Context())
    found = verdicts(section)
    ours = "deeptobit's defaults"
    assert found[f"One pass finds the subspace ({ours})."] == "holds"
    assert found[f"Successive subspaces approach like 1/i or faster ({ours})."] == "holds"
    # U is determined up to U → UA alone, so that the paper's measure cannot vanish.
    assert found[f"‖U − Uᵢ‖/‖U‖ goes below 1, the value of Uᵢ = 0 ({ours})."] == "does not hold"
    assert len(section.figures[0].data["panels"]) == 4
    angles = section.figures[0].data["panels"][1]["lines"]
    assert angles[0]["y"][-1] < min(line["y"][-1] for line in angles[1:])


@pytest.mark.slow
def test_table_recovery() -> None:
    pytest.importorskip("torch")
    section = reproduce("table-recovery", SMALL, Context())
    found = verdicts(section)
    assert found["The first layer finds its subspace, on data of one layer."] == "holds"
    assert found["SN recovers layer 3 of three better than chance."] == "holds"
    assert found["SN recovers layer 1 of three better than chance."] == "cannot be told"
    rows = section.tables[0].frame
    assert rows["method"].tolist()[:3] == ["SN", "f-MLP", "rf-MLP"]
    data = section.tables[0].data
    assert data is not None
    first = data[(data["method"] == "SN") & (data["layer"] == 1)]
    assert (first["last_cosine"] > first["mean_cosine"]).all()


@pytest.mark.slow
def test_table_runtime() -> None:
    pytest.importorskip("torch")
    section = reproduce("table-runtime", SMALL, Context())
    assert verdicts(section)["SN, one layer online is faster than DNN."] == "holds"
    assert "109" in section.tables[0].frame["paper's seconds"].tolist()


def test_fig_network() -> None:
    section = reproduce("fig-network", SMALL, Context())
    layers = section.figures[0].data["layers"]
    assert [layer["inputs"] for layer in layers] == [138, 168, 168]
    assert {layer["rank"] for layer in layers} == {SMALL.real_rank}
    expected = "cohort = a simulated clinical cohort · N = 670 · D = 138 · T = 30 · R = 5 · "
    assert settings(section) == {f"{expected}layers = 3 · seed = 0"}


@pytest.mark.slow
def test_fig_brain() -> None:
    section = reproduce("fig-brain", SMALL, Context())
    assert set(verdicts(section).values()) == {"holds"}
    loadings = section.figures[0].data["loadings"]
    assert loadings.shape == (138, 5)
    np.testing.assert_allclose(np.abs(loadings).max(axis=0), 1.0)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers_side_by_side() -> None:
    once = reproduce("fig-weights", SMALL, Context(seed=3))
    twice = reproduce("fig-weights", SMALL, Context(seed=3, n_jobs=2))
    other = reproduce("fig-weights", SMALL, Context(seed=4))
    assert once.tables[0].frame.equals(twice.tables[0].frame)
    assert not once.tables[0].frame.equals(other.tables[0].frame)
