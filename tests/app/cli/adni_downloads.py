"""All tables that ``load_adni`` asks for; scores of simulated people follow their scans."""

from pathlib import Path

import numpy as np
import pandas as pd

from deeptobit.datasets import make_clinical_cohort, packaged_table


def write_downloads(folder: Path, n_people: int) -> Path:
    """Scans at screening, 30 scores in four tables, one row for every person and visit."""
    folder.mkdir()
    people = make_clinical_cohort(n_people, missing=0.0, random_state=0)
    rid = pd.Series(range(1, n_people + 1), name="RID")
    scans = people.X.set_axis(packaged_table("adni_features")["column"], axis=1)
    scans.assign(RID=rid.to_numpy(), VISCODE="sc", RUNDATE="2007-05-16").to_csv(
        folder / "UCSFFSX_11_02_15_20Mar2024.csv", index=False
    )
    health = people.X.rank(pct=True).mean(axis=1).rank(pct=True).to_numpy()
    rng = np.random.default_rng(0)
    for table, scores in packaged_table("adni_scores").groupby("table"):
        visits = [
            pd.DataFrame({"RID": rid, "VISCODE": visit}).assign(
                **{
                    str(column): _score(health, float(lower), float(upper), rng)
                    for column, lower, upper in at_visit[["column", "lower", "upper"]].to_numpy()
                }
            )
            for visit, at_visit in scores.groupby("visit")
        ]
        pd.concat(visits).to_csv(folder / f"{table}_20Mar2024.csv", index=False)
    return folder


def _score(health: np.ndarray, lower: float, upper: float, rng: np.random.Generator) -> np.ndarray:
    """Whole points between the bounds; many people are at the upper one."""
    upper = upper if np.isfinite(upper) else 20.0
    share = 1.2 * health + 0.1 * rng.normal(size=len(health))
    return np.clip(np.round(lower + (upper - lower) * share), lower, upper)
