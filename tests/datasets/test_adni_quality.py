"""Quality control of ADNI's scans, gaps, and cells that are not what their column says."""

from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from deeptobit.datasets import Cohort, load_adni, packaged_table
from tests.datasets.adni_folder import REGIONS

SCANS = "UCSFFSX7_20Mar2024.csv"
LOBES = ("FRONTQC", "TEMPQC", "PARQC", "OCCQC", "INSULAQC")
PASSED = "Pass,Pass,Pass,Pass,Pass"
SCORES = "table,column,visit,lower,upper\nMMSE,MMSCORE,bl,0,30\n"
MMSE = "RID,VISCODE,USERDATE,MMDATE,MMSCORE\n" + "".join(
    f"{rid},bl,2006-01-01,1,28\n" for rid in range(1, 7)
)


def write(
    folder: Path, verdicts: list[str], *, header: str = "RID,OVERALLQC," + ",".join(LOBES)
) -> Path:
    """A folder with a scan for each line of ``verdicts``; scan k measures k + 1 everywhere."""
    rated = pd.read_csv(StringIO("\n".join([header, *verdicts])), dtype=str)
    measured = pd.DataFrame({name: range(1, len(rated) + 1) for name in REGIONS["column"]})
    rated = rated.assign(VISCODE="sc", VENTQC="Fail", BGQC="Fail", HIPPOQC="Fail")
    pd.concat([rated, measured], axis=1).to_csv(folder / SCANS, index=False)
    (folder / "MMSE.csv").write_text(MMSE)
    (folder / "scores.csv").write_text(SCORES)
    return folder


def load(folder: Path, **settings: Any) -> Cohort:
    return load_adni(folder, scores=folder / "scores.csv", **settings)


def load_with_warning(folder: Path, message: str, **settings: Any) -> Cohort:
    """Load with this one warning, which must point here."""
    with pytest.warns(UserWarning, match=message) as caught:
        cohort = load(folder, **settings)
    assert [one.filename for one in caught] == [__file__]
    return cohort


def change(path: Path, row: int, column: str, cell: str) -> None:
    """Write a cell in the row that a spreadsheet shows."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    table.loc[row - 2, column] = cell
    table.to_csv(path, index=False)


# Quality control.


def test_scans_that_did_not_pass_are_left_out_and_counted(tmp_path: Path) -> None:
    verdicts = [
        f"1,Pass,{PASSED}",
        f"2,Fail,{PASSED}",
        f"3,Hippocampus Only,{PASSED}",
        f"4,,{PASSED}",
        f"5,Pending,{PASSED}",
        f"6, pass ,{PASSED.upper()}",
    ]
    folder = write(tmp_path, verdicts)
    message = (
        rf"quality control of {SCANS} leaves out 4 of 6 scans \(1 Fail, 1 Hippocampus Only, "
        r"1 blank, 1 Pending\) and lobes of 0 more; qc='any' uses all"
    )
    assert load_with_warning(folder, message).X.index.tolist() == [1, 6]
    assert load(folder, qc="any").X.index.tolist() == [1, 2, 3, 4, 5, 6]


def test_a_partial_scan_keeps_the_lobes_that_passed(tmp_path: Path) -> None:
    folder = write(tmp_path, [f"1,Pass,{PASSED}", "2,Partial,Pass,Fail,,Pass,Pass"])
    message = r"0 of 2 scans and lobes of 1 more \(1 TEMPQC, 1 PARQC\)"
    cohort = load_with_warning(folder, message, missing="keep")
    assert cohort.X.loc[1].eq(1).all()
    gaps = cohort.X.columns[cohort.X.loc[[2]].isna().all()]
    regions = set(gaps.str.split("_").str[1])
    assert {"entorhinal", "bankssts", "precuneus", "isthmuscingulate"} <= regions
    assert not regions & {"superiorfrontal", "rostralanteriorcingulate", "lingual", "insula"}
    # 9 temporal and 7 parietal regions on two sides, two measures; two hemispheres.
    assert len(gaps) == 4 * (9 + 7) + 2


def test_a_partial_scan_is_left_out_where_gaps_are(tmp_path: Path) -> None:
    folder = write(tmp_path, [f"1,Pass,{PASSED}", "2,Partial,Pass,Fail,Pass,Pass,Pass"])
    with pytest.warns(UserWarning, match="scans") as caught:
        cohort = load(folder)
    first, second = (str(one.message) for one in caught)
    assert "lobes of 1 more (1 TEMPQC);" in first
    assert "1 of 2 scans" in second
    assert cohort.X.index.tolist() == [1]


def test_a_partial_scan_whose_cortex_passed_is_complete(tmp_path: Path) -> None:
    # What failed is below the cortex (VENTQC and others).
    assert load(write(tmp_path, [f"1,Partial,{PASSED}"])).X.notna().all(axis=None)


def test_a_failed_lobe_of_a_scan_that_passed_is_not_used(tmp_path: Path) -> None:
    folder = write(tmp_path, ["1,Pass,Pass,Pass,Pass,Pass,Fail"])
    cohort = load_with_warning(folder, r"\(1 INSULAQC\)", missing="keep")
    assert cohort.X.isna().sum(axis=1).tolist() == [4 + 2]


@pytest.mark.parametrize(
    ("second", "used"),
    [
        ("Fail,Pass,Pass,Pass,Pass,Pass,2012-01-01", 1),
        (",Pass,Pass,Pass,Pass,Pass,2012-01-01", 1),
        ("Partial,Pass,Fail,Pass,Pass,Pass,2012-01-01", 1),
        ("Partial,Pass,Pass,Pass,Pass,Pass,2012-01-01", 2),
        ("Pass,Pass,Pass,Pass,Pass,Pass,2012-01-01", 2),
        ("Pass,Pass,Pass,Pass,Pass,Pass,2001-01-01", 1),
    ],
)
def test_the_latest_of_the_best_runs_is_used(tmp_path: Path, second: str, used: int) -> None:
    header = f"RID,OVERALLQC,{','.join(LOBES)},RUNDATE"
    folder = write(tmp_path, [f"1,Pass,{PASSED},2007-01-01", f"1,{second}"], header=header)
    assert load(folder).X.eq(used).all(axis=None)


def test_any_takes_the_latest_run_whatever_its_verdict(tmp_path: Path) -> None:
    lines = ["1,Pass,2007-01-01", "1,Fail,2012-01-01"]
    folder = write(tmp_path, lines, header="RID,OVERALLQC,RUNDATE")
    assert load(folder, qc="any").X.eq(2).all(axis=None)


@pytest.mark.parametrize("header", ["RID", "RID,overallqc", "RID,FRONTQC"])
def test_columns_of_quality_control_may_be_lacking(tmp_path: Path, header: str) -> None:
    line = "1" if header == "RID" else "1,Pass"
    assert load(write(tmp_path, [line], header=header)).X.index.tolist() == [1]


def test_no_scan_passed(tmp_path: Path) -> None:
    folder = write(tmp_path, [f"1,Fail,{PASSED}", f"2,,{PASSED}", f"3, ,{PASSED}"])
    message = rf"no scan of {SCANS} at this visit passed .*\(2 blank, 1 Fail\); qc='any' uses all"
    with pytest.raises(ValueError, match=message):
        load(folder)


def test_every_region_has_the_lobe_of_the_simulated_brain() -> None:
    names = {"frontal": "FRONTQC", "temporal": "TEMPQC", "parietal": "PARQC"}
    names |= {"occipital": "OCCQC", "insula": "INSULAQC"}
    lobes = packaged_table("brain_regions").set_index("name")["lobe"].map(names)
    region = REGIONS["name"].str.split("_").str[1]
    expected = region.map(lobes.dropna())
    known = expected.notna()
    assert REGIONS["lobe_qc"][known].eq(expected[known]).all()
    # The rest: four parts of the cingulate, on two sides with two measures, and hemispheres.
    assert (~known).sum() == 4 * 4 + 2
    is_hemisphere = region == "WhiteSurfArea"
    assert REGIONS["lobe_qc"].isna().equals(is_hemisphere)


# Gaps.


def test_gaps_are_kept_or_left_out(tmp_path: Path) -> None:
    folder = write(tmp_path, ["1", "2", "3"], header="RID")
    change(folder / SCANS, 3, "ST14SA", "")
    change(folder / SCANS, 4, "ST14SA", "-4")
    kept = load(folder, missing="keep").X
    assert kept["lh_caudalanteriorcingulate_area"].isna().to_dict() == {1: False, 2: True, 3: True}
    assert kept.isna().to_numpy().sum() == 2
    left = load_with_warning(folder, rf"2 of 3 scans of {SCANS} .* lack a measurement \(RID 2: ")
    assert left.X.index.tolist() == [1]


def test_a_scan_without_any_measurement_is_no_scan(tmp_path: Path) -> None:
    folder = write(tmp_path, ["1", "2"], header="RID")
    table = pd.read_csv(folder / SCANS, dtype=str)
    table.loc[1, REGIONS["column"]] = ""
    table.to_csv(folder / SCANS, index=False)
    cohort = load_with_warning(folder, "1 of 2 scans .* lack every measurement", missing="keep")
    assert cohort.X.index.tolist() == [1]
    table[REGIONS["column"]] = ""
    table.to_csv(folder / SCANS, index=False)
    with pytest.raises(ValueError, match=r"has a measurement; .* is missing in 2 of 2"):
        load(folder, missing="keep")


# Cells.


@pytest.mark.parametrize("cell", ["ten", "31", "-7", "inf", "1e999", "3 of 30", "28,5"])
def test_a_score_that_is_not_on_its_scale_is_missing(tmp_path: Path, cell: str) -> None:
    folder = write(tmp_path, ["1", "2"], header="RID")
    change(folder / "MMSE.csv", 3, "MMSCORE", cell)
    (folder / "scores.csv").write_text(SCORES + "MMSE,MMDATE,bl,0,\n")  # so that person 2 stays
    message = (
        r"cells of MMSE\.csv that are not on their scale count as missing:\n"
        rf"  MMSCORE: 1 cell not in \[0, 30\] \(row 3: {cell}\)$"
    )
    scores = load_with_warning(folder, message).Y["MMSCORE_bl"]
    assert scores[1] == 28
    assert pd.isna(scores[2])


def test_an_unbounded_score_is_finite(tmp_path: Path) -> None:
    folder = write(tmp_path, ["1", "2"], header="RID")
    (folder / "scores.csv").write_text(SCORES.replace("0,30", ","))
    change(folder / "MMSE.csv", 2, "MMSCORE", "-inf")
    cohort = load_with_warning(folder, r"not in \[-inf, inf\] \(row 2: -inf\)")
    assert cohort.X.index.tolist() == [2]


@pytest.mark.parametrize("cell", ["", "  ", "NA", "-1", "-4", "-4.0"])
def test_what_means_missing_is_not_worth_a_warning(tmp_path: Path, cell: str) -> None:
    folder = write(tmp_path, ["1", "2"], header="RID")
    change(folder / "MMSE.csv", 2, "MMSCORE", cell)
    assert load(folder).X.index.tolist() == [2]


def test_the_first_rows_of_many_are_named(tmp_path: Path) -> None:
    folder = write(tmp_path, ["1", "6"], header="RID")
    for row in (2, 4, 5, 6):
        change(folder / "MMSE.csv", row, "MMSCORE", "?")
    path = folder / "MMSE.csv"
    # A spreadsheet shows blank lines, too; later dates first do not change the order of rows.
    path.write_text(path.read_text().replace("3,bl,2006", "\n3,bl,2009"))
    message = r"MMSCORE: 4 cells not in \[0, 30\] \(row 2: \?, row 5: \?, row 6: \?, \.\.\.\)$"
    assert load_with_warning(folder, message).X.index.tolist() == [6]


def test_a_bad_cell_does_not_hide_an_earlier_good_one(tmp_path: Path) -> None:
    folder = write(tmp_path, ["1"], header="RID")
    with (folder / "MMSE.csv").open("a") as stream:
        stream.write("1,bl,2007-01-01,,99\n")
    cohort = load_with_warning(folder, r"\(row 8: 99\)")
    assert cohort.Y["MMSCORE_bl"].to_dict() == {1: 28}


def test_cells_of_other_visits_do_not_matter(tmp_path: Path) -> None:
    folder = write(tmp_path, ["1"], header="RID")
    with (folder / "MMSE.csv").open("a") as stream:
        stream.write("1,m06,2007-01-01,,ninety\n")
    assert load(folder).X.index.tolist() == [1]


@pytest.mark.parametrize("cell", ["0", "-7", "thick", "inf"])
def test_a_measurement_that_is_not_above_zero_is_missing(tmp_path: Path, cell: str) -> None:
    folder = write(tmp_path, ["1", "2"], header="RID")
    change(folder / SCANS, 3, "ST14SA", cell)
    change(folder / SCANS, 3, "ST14TA", cell)
    message = (
        rf"cells of {SCANS} .*:\n  ST14TA: 1 cell not above 0 \(row 3: {cell}\)\n"
        rf"  ST14SA: 1 cell not above 0 \(row 3: {cell}\)$"
    )
    gaps = load_with_warning(folder, message, missing="keep").X.isna()
    assert gaps.sum(axis=1).to_dict() == {1: 0, 2: 2}


def test_a_row_without_a_person_is_left_out(tmp_path: Path) -> None:
    folder = write(tmp_path, ["1", "2"], header="RID")
    change(folder / "MMSE.csv", 3, "RID", "002_S_0002")
    cohort = load_with_warning(folder, r"RID: 1 cell not in .* \(row 3: 002_S_0002\)")
    assert cohort.X.index.tolist() == [1]


# Names of files.


@pytest.mark.parametrize(
    "name",
    [
        "All_Subjects_MMSE_20Mar2024.csv",
        "ALL_SUBJECTS_mmse.CSV",
        "all_subjects_MMSE_11_02_15_20Mar2024.csv",
    ],
)
def test_files_are_named_as_adni_does_today(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path, ["1"], header="RID")
    (folder / "MMSE.csv").rename(folder / name)
    (folder / SCANS).rename(folder / f"All_Subjects_{SCANS}")
    (folder / "All_Subjects_MMSE_DICT_20Mar2024.csv").touch()
    assert load(folder).X.index.tolist() == [1]
