import re

import numpy as np
import pytest

from deeptobit.app.study.columns import SCALES, find_floor_and_ceiling, known_scale, sf36_together
from deeptobit.datasets import packaged_table


@pytest.mark.parametrize(
    ("column", "low", "high", "bounds"),
    [
        ("MMSE", 10, 30, (0, 30)),
        ("mmse.total_m12", 10, 30, (0, 30)),
        ("MMSE visit 2", 10, 30, (0, 30)),
        ("ADAS-Cog 13", 3, 60, (0, 85)),
        ("ADAS11_bl", 3, 60, (0, 70)),
        ("ADASQ4", 0, 10, (0, 10)),
        ("CDRSB", 0, 9, (0, 18)),
        ("CDR sum of boxes", 0, 9, (0, 18)),
        ("CDGLOBAL", 0, 2, (0, 3)),
        ("FAQTOTAL", 0, 20, (0, 30)),
        ("LDELTOTAL_bl", 0, 20, (0, 25)),
        ("AVTOT5", 0, 15, (0, 15)),
        ("AVDEL30MIN", 0, 15, (0, 15)),
        ("RAVLT_immediate", 10, 60, (0, 75)),
        ("RAVLT_learning", -3, 12, (-15, 15)),
        ("NPIQ_bl", 0, 20, (0, 36)),
        ("NPISCORE", 0, 20, (0, 36)),
        ("npi", 0, 20, (0, 144)),
        ("npiq_distress", 0, 40, (0, 60)),
        ("PHQ-9", 0, 20, (0, 27)),
        ("PHQ-8", 0, 20, (0, 24)),
        ("phq_2", 0, 6, (0, 6)),
        ("gad7_score", 0, 20, (0, 21)),
        ("HAM-D17", 0, 30, (0, 52)),
        ("hads_anxiety", 0, 20, (0, 21)),
        ("hads", 0, 40, (0, 42)),
        ("CES-D", 0, 50, (0, 60)),
        ("PSS-14", 5, 30, (0, 56)),
        ("EQ-5D VAS", 10, 100, (0, 100)),
        ("womac_function", 0, 60, (0, 68)),
        ("womac_total", 0, 60, (0, 96)),
        ("barthel", 0, 100, (0, 100)),
        ("barthel", 2, 20, (0, 20)),
        ("UPDRS_III", 0, 90, (0, 108)),
        ("updrs3", 0, 120, (0, 132)),
        ("MDS-UPDRS part 2", 0, 30, (0, 52)),
        ("MDS-UPDRS", 0, 150, (0, 260)),
        ("BDI-II", 0, 40, (0, 63)),
        ("gds", 0, 14, (0, 15)),
        ("gds", 0, 28, (0, 30)),
        ("GDS-30", 0, 12, (0, 30)),
    ],
)
def test_columns_are_recognised(
    column: str, low: float, high: float, bounds: tuple[float, float]
) -> None:
    scale = known_scale(column, low, high)
    assert scale is not None
    assert (scale.lower, scale.upper) == bounds


@pytest.mark.parametrize(
    "column",
    [
        "age",
        "MMSE_change",
        "phq9_item3",
        "phq9_3",
        "mmse_missing",
        "RAVLT_perc_forget",
        "koos_q3",
        "hamd_21",
        "sf36_pcs",
        "sf36_mcs",
        "sf36_q9a",
        "sf36_9",
    ],
)
def test_what_is_not_the_scale_itself_is_left_alone(column: str) -> None:
    assert known_scale(column, 0, 3) is None


@pytest.mark.parametrize(
    ("column", "subscale"),
    [
        ("sf36_vitality", "vitality"),
        ("SF-36 PF", "physical functioning"),
        ("sf36v2_role_physical_bl", "role physical"),
        ("RAND-36 mental health", "mental health"),
    ],
)
def test_subscales_of_the_sf36_are_known_behind_its_name(column: str, subscale: str) -> None:
    scale = known_scale(column, 0, 100)
    assert scale is not None
    assert (scale.name, scale.lower, scale.upper) == (f"SF-36 {subscale}", 0, 100)


def test_bare_names_of_the_sf36_are_known_only_together() -> None:
    three = ["PF", "BP", "MH_bl", "BP_bl", "age", "PCS"]
    assert sf36_together(three) == frozenset()
    four = [*three, "vitality"]
    assert sf36_together(four) == {"PF", "BP", "MH_bl", "BP_bl", "vitality"}
    assert known_scale("BP", 10, 100) is None
    scale = known_scale("BP", 10, 100, sf36=sf36_together(four))
    assert scale is not None
    assert scale.name == "SF-36 bodily pain"


def test_blood_pressure_and_norm_scores_are_not_the_sf36() -> None:
    together = frozenset({"BP", "PF"})
    assert known_scale("BP", 90, 180, sf36=together) is None
    assert known_scale("PF", 18.5, 57.0, sf36=together) is None
    assert known_scale("sf36_pf", 18.5, 57.0) is None


def test_values_beyond_the_bounds_are_another_scale() -> None:
    assert known_scale("MMSE", 0, 31) is None
    assert known_scale("MMSE", -4, 30) is None


def test_the_table_is_sound_and_sourced() -> None:
    for scale in SCALES:
        re.compile(scale.pattern)
        assert scale.lower < scale.upper
        assert re.search(r"\d{4}", scale.source), scale.name


def test_every_name_of_the_table_finds_its_own_scale_first_or_a_shorter_version() -> None:
    for scale in SCALES:
        name = scale.pattern.split("|")[0]
        name = re.sub(r"\([^()]*(\([^()]*\)[^()]*)*\)\?|_\?", "", name)
        if re.search(r"[()\[\]?]", name):
            continue  # a pattern of several names
        found = known_scale(name, scale.lower, scale.upper)
        assert found is not None, scale
        assert (found.lower, found.upper) == (scale.lower, scale.upper), scale


def test_scores_of_adni_have_the_bounds_of_the_packaged_table() -> None:
    table = packaged_table("adni_scores").query("upper < inf and column != 'Q4'")
    names = (table["column"] + "_" + table["visit"]).tolist()
    bounds = table[["lower", "upper"]].to_numpy(dtype=float).tolist()
    for name, (lower, upper) in zip(names, bounds, strict=True):
        scale = known_scale(name, lower, upper)
        assert scale is not None, name
        assert (scale.lower, scale.upper) == (lower, upper), name


def test_it_agrees_with_the_simulated_cohort() -> None:
    for _, score in packaged_table("clinical_scores").iterrows():
        bounds = score["lower"], score["upper"]
        scale = known_scale(f"{score['test']}_{score['visit']}", *bounds)
        assert scale is None or (scale.lower, scale.upper) == bounds, score


def test_floors_and_ceilings() -> None:
    rng = np.random.default_rng(0)
    latent = rng.normal(size=500)
    assert find_floor_and_ceiling(latent) == {}
    ends = find_floor_and_ceiling(np.clip(latent, -1.0, 1.5))
    assert {side: end for side, (end, _) in ends.items()} == {"lower": -1.0, "upper": 1.5}
    assert find_floor_and_ceiling(np.round(10 * latent)) == {}
    assert find_floor_and_ceiling(rng.integers(0, 2, 500).astype(float)) == {}
    assert find_floor_and_ceiling(np.full(500, np.nan)) == {}
