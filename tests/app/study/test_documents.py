"""The format is documented as it is."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from deeptobit.app.study import read_study
from deeptobit.app.study.config import (
    MODEL_KINDS,
    DataSettings,
    EvaluationSettings,
    FeatureSettings,
    ReportSettings,
    TargetSettings,
)

TEXT = (Path(__file__).parents[3] / "docs" / "study.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "section",
    [
        *(DataSettings, FeatureSettings, TargetSettings),
        *(*MODEL_KINDS.values(), EvaluationSettings, ReportSettings),
    ],
)
def test_every_key_is_explained(section: type) -> None:
    for item in fields(section):
        assert not item.metadata or f"`{item.name}`" in TEXT, item.name


def test_the_example_is_a_study_file(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(.*?)```", TEXT, flags=re.DOTALL)
    assert example is not None
    path = tmp_path / "study.toml"
    path.write_text(example[1])
    study = read_study(path)
    assert [target.name for target in study.targets] == ["MMSE", "CSF tau", "CRP"]
    assert study.targets[1].helpers == {"lower": "tau_lod"}
    assert study.data.missing == (-4, "refused")
