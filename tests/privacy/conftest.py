from pathlib import Path

import pytest

from tests.privacy.canaries import run, write_cohort


@pytest.fixture(scope="session")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study and all that commands make of it."""
    folder = tmp_path_factory.mktemp("clinic")
    study = write_cohort(folder)
    model = folder / "clinic.deeptobit"
    run("fit", study, "--jobs", 1)
    run("report", model)
    run("export", model)
    quick = ("--methods", "null,ridge", "--repeats", 1, "--train-shares", 0.7)
    run("evaluate", study, *quick, "--out", folder / "compared")
    return folder
