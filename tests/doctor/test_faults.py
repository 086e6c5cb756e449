"""Every fault is named, and mended by what is proposed."""

from pathlib import Path

import pytest

from deeptobit.app.study import StudyError, build_data, fit_study, read_data, read_study
from deeptobit.app.study.doctor.registry import edit_study, examine, refuse
from tests.doctor.faults import ALL, ONE, Fault, clean, write_fault

CLEAN = Fault("nothing", ())
ONE_OF = 8  # every so many faults are fitted without 'slow'


def _examine(study: Path) -> list[str]:
    """Names of all findings, in up to four rounds of mending."""
    names: list[str] = []
    for _ in range(4):
        settings = read_study(study)
        found, _ = examine(settings, read_data(settings))
        names += [one.name for one in found]
        mended = [one for one in found if one.edits and one.level != "note"]
        if not mended:
            refuse(found, ())
            return names
        study.write_text(edit_study(study.read_text(encoding="utf-8"), mended, explain=True))
    raise AssertionError(f"fixes do not end: {names}")


def _r2(study: Path) -> dict[str, float]:
    settings = read_study(study)
    data = build_data(settings, read_data(settings))
    return dict(fit_study(settings, data, findings=[], n_jobs=1).held_out.table()["r2"])


def test_there_are_enough_faults() -> None:
    assert len(ALL) >= 60
    assert len({fault.name for fault in ALL}) == len(ALL)


@pytest.mark.parametrize("seed", range(3))
def test_a_clean_table_has_no_finding(seed: int, tmp_path: Path) -> None:
    assert _examine(write_fault(CLEAN, tmp_path, seed)) == []


@pytest.mark.parametrize("fault", ALL, ids=lambda fault: fault.name)
def test_a_fault_is_named(fault: Fault, tmp_path: Path) -> None:
    study = write_fault(fault, tmp_path)
    if fault.refused:
        with pytest.raises(StudyError, match=fault.refused.replace("(", ".").replace(")", ".")):
            _examine(study)
        return
    try:
        names = _examine(study)
    except StudyError as error:
        assert not fault.mends
        names = [str(error)]
    wanted = all if "&" in fault.name else any
    assert wanted(any(name in told for told in names) for name in fault.found), names


def _mended(number: int, fault: Fault) -> object:
    marks = () if number % ONE_OF == 0 else (pytest.mark.slow,)
    return pytest.param(fault, marks=marks, id=fault.name)


MENDED = [fault for fault in ALL if fault.mends and not fault.refused]


@pytest.fixture(scope="module")
def clean_r2(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    return _r2(write_fault(CLEAN, tmp_path_factory.mktemp("clean")))


@pytest.mark.parametrize("fault", [_mended(n, fault) for n, fault in enumerate(MENDED)])
def test_a_fault_is_mended(fault: Fault, clean_r2: dict[str, float], tmp_path: Path) -> None:
    study = write_fault(fault, tmp_path)
    _examine(study)
    found = _r2(study)
    for name, r2 in clean_r2.items():
        assert found[name] == pytest.approx(r2, abs=0.02)


def test_faults_change_the_table_or_its_study() -> None:
    """A fault that changes nothing could not be missed."""
    assert all(fault.found or fault.refused for fault in ONE)
    assert clean().notna().all(axis=None)
