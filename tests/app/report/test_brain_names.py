"""Names of features: every spelling finds its region, and nothing else does."""

import pandas as pd
import pytest

from deeptobit.app.report import recognise_regions
from deeptobit.datasets import packaged_table


def place(name: str) -> tuple[str, ...] | None:
    table = recognise_regions([name]).table
    return tuple(table.iloc[0]) if len(table) else None


@pytest.mark.parametrize(
    "name",
    [
        "lh_superiorfrontal_thickness",
        "LH.SuperiorFrontal.Thickness",
        "lh-superiorfrontal-thickness",
        "left_superiorfrontal_thickness",
        "Left Superior Frontal Thickness",
        "L_superiorfrontal_thickavg",
        "ctx-lh-superiorfrontal-thickness",
        "CTX_LH_SUPERIORFRONTAL_THICKNESS",
        "ST56TA",
        "st56ta",
        "ST56TA_UCSFFSX_11_02_15_UCSFFSX51_08_01_16",
        "ST56TA.bl",
    ],
)
def test_every_spelling_of_a_region_is_recognised(name: str) -> None:
    assert place(name) == ("left", "superiorfrontal", "thickness")


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("rh_insula_area", "area"),
        ("R_insula_surfavg", "area"),
        ("rh_insula_volume", "volume"),
        ("rh_insula_thicknessstd", "thicknessstd"),
        ("ST130TA", "thickness"),
        ("ST130SA", "area"),
        ("ST130CV", "volume"),
        ("ST130TS", "thicknessstd"),
        ("CTX_RH_INSULA_SUVR", "suvr"),
        ("rh_insula_cortical_myelin", "cortical myelin"),
        ("ctx-rh-insula", "value"),
        ("ctx_rh_insula", "value"),
    ],
)
def test_the_measure_is_read(name: str, measure: str) -> None:
    assert place(name) == ("right", "insula", measure)


def test_codes_of_adni_and_names_of_freesurfer_agree_on_all_places() -> None:
    table = packaged_table("adni_features")
    by_code = recognise_regions(table["column"]).table
    by_name = recognise_regions(table["name"]).table
    assert len(by_code) == len(by_name) == 136
    pd.testing.assert_frame_equal(by_code.reset_index(drop=True), by_name.reset_index(drop=True))
    places = by_code.groupby("measure").apply(lambda rows: len(rows.drop_duplicates()))
    assert places.to_dict() == {"thickness": 68, "area": 68}


@pytest.mark.parametrize(
    "name",
    [
        "age",
        "",
        "lh",
        "ctx",
        "insula",
        "precuneus_thickness",
        "lh_insula_thickness (missing)",
        "lh_insula_thickness=high",
        "ST129TA (missing)",
        "ST129SV",
        "ST1290TA",
        "XST130TA",
        "Left-Hippocampus",
        "lh_corpuscallosum_area",
        "lh_unknown_thickness",
        "lh_superiofrontal_thickness",
        "lh_G_cuneus_thickness",
        "lh_S_postcentral_area",
        "lh_precentral_2_thickness",
        "ST22TA",
        "ST64TA",
    ],
)
def test_what_is_not_a_region_of_the_atlas_is_listed_as_unknown(name: str) -> None:
    found = recognise_regions([name])
    assert found.unknown == (name,)
    assert not len(found.table)
    assert not found.totals
    assert found.measures == []


@pytest.mark.parametrize(
    "name",
    [
        "lh_WhiteSurfArea_area",
        "rh_MeanThickness_thickness",
        "lh.meanthickness",
        "ST27SA",
        "ST28SA",
        "ST86SA",
        "ST87SA_suffix",
        "ST10CV",
        "LThickness",
        "BrainSegVolNotVent",
        "eTIV",
        "lhCortexVol",
    ],
)
def test_totals_are_known_not_to_be_regional(name: str) -> None:
    found = recognise_regions([name])
    assert found.totals == (name,)
    assert not found.unknown
    assert not len(found.table)


def test_every_name_is_in_exactly_one_place() -> None:
    names = ["age", "lh_insula_area", "ST27SA", "ST130SA", "lh_insula_area", "L.Insula.Area", "x"]
    found = recognise_regions(names)
    assert list(found.table.index) == ["lh_insula_area", "ST130SA"]
    parts = [*found.table.index, *found.totals, *found.repeated, *found.unknown]
    assert sorted(parts) == sorted(names)


def test_a_second_column_of_the_same_place_is_listed_as_repeated() -> None:
    found = recognise_regions(["lh_bankssts_area", "ST13SA", "lh_bankssts_area", "ST13TA"])
    assert list(found.table.index) == ["lh_bankssts_area", "ST13TA"]
    assert found.repeated == ("ST13SA", "lh_bankssts_area")


def test_visits_are_told_apart_and_a_common_suffix_is_not_repeated() -> None:
    visits = ["lh_insula_area_bl", "lh_insula_area_m12", "lh_insula_volume_bl"]
    assert recognise_regions(visits).measures == ["area bl", "area m12", "volume"]
    change = ["ST13TA", "ST13TA_change"]
    assert recognise_regions(change).measures == ["thickness", "thickness change"]


def test_the_measure_of_most_regions_comes_first() -> None:
    names = ["lh_insula_area", "lh_insula_thickness", "rh_insula_thickness"]
    assert recognise_regions(names).measures == ["thickness", "area"]


def test_no_names_are_no_regions() -> None:
    found = recognise_regions([])
    assert found.measures == []
    assert found.not_drawn() == ""
    assert list(found.table.columns) == ["hemisphere", "region", "measure"]


def test_a_sentence_lists_what_has_no_place() -> None:
    found = recognise_regions(["lh_insula_area", "eTIV", "age", "sex", "apoe4", "ctx-lh-none"])
    assert found.not_drawn() == (
        "Not on the map: totals of a hemisphere or the head (eTIV); "
        "features outside the atlas (age, sex, apoe4 and ctx-lh-none)."
    )
    assert found.not_drawn(shown=2).endswith("(age, sex and 2 more).")
