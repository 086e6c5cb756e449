"""A small study of visits that can be fitted in a second."""

from pathlib import Path

import numpy as np

from deeptobit.app.study import Study, StudyData, build_data, read_data, read_study

STUDY = """\
[data]
file = "cohort.csv"
id = "visit"
{group}

[features]
exclude = ["person"]

[targets.MMSE]
lower = 0
upper = 30

[targets.tau]
lower = "lod"

[targets.speed]

[model]
{settings}
cv = {cv}
"""


def write_cohort(
    folder: Path,
    n_people: int = 40,
    *,
    grouped: bool = True,
    max_layers: int = 1,
    cv: int = 3,
    kind: str = "auto",
    seed: int = 0,
) -> Path:
    """Two visits of every person: a score with a ceiling, an assay with limits, a plain time.

    A Tobit model of every target is fitted in no time, where any model does.
    """
    rng = np.random.default_rng(seed)
    lines = ["visit,person,age,sex,volume,MMSE,tau,lod,speed"]
    for person in range(n_people):
        health = rng.normal()
        sex = rng.choice(["f", "m"])
        for visit in range(2):
            age = 70.0 + 6.0 * rng.normal()
            volume = 3000.0 + 300.0 * health + 50.0 * rng.normal()
            mmse = np.clip(np.round(28.0 + 2.0 * health + rng.normal()), 0, 30)
            lod = 0.5 if visit else 0.8
            tau = max(lod, 1.0 - 0.6 * health + 0.3 * rng.normal())
            speed = 10.0 + 2.0 * health + 0.2 * (age - 70.0) + rng.normal()
            shown = "" if rng.random() < 0.1 else f"{age:.1f}"
            lines.append(
                f"{person:03d}-{visit},{person:03d},{shown},{sex},{volume:.0f},{mmse:.0f},"
                f"{tau:.3f},{lod},{speed:.2f}"
            )
    (folder / "cohort.csv").write_text("\n".join(lines) + "\n")
    path = folder / "cohort.toml"
    group = 'group = "person"' if grouped else ""
    settings = 'members = ["stack"]' if max_layers == 1 else ""
    if kind == "tobit":
        settings = 'kind = "tobit"\nalpha = 0.1'
    path.write_text(STUDY.format(group=group, settings=settings, cv=cv))
    return path


def read_cohort(path: Path) -> tuple[Study, StudyData]:
    study = read_study(path)
    return study, build_data(study, read_data(study))
