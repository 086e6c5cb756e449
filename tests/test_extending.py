"""A newcomer who follows docs/extending.md, and nothing else, has a noise family."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from deeptobit import TobitRegressor
from deeptobit.likelihood import Noise
from tests.pages import Block, Reader, read_blocks, read_commands

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "extending.md"
FAMILIES = "tests/likelihood/families.py"


def block(language: str, title: str | None) -> Block:
    (found,) = (b for b in read_blocks(PAGE) if (b.language, b.title) == (language, title))
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the page, where it can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Reader(PAGE).follow(block("python", "hyperbolic_secant.py"))
    return tmp_path


def test_the_family_passes_what_every_family_passes(folder: Path) -> None:
    for name in ("likelihood", "reference"):
        shutil.copytree(ROOT / "tests" / name, folder / "tests" / name)
    shutil.copy(ROOT / "tests" / "__init__.py", folder / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    with (folder / FAMILIES).open("a") as families:
        families.write(block("python", f"at the end of {FAMILIES}").text)
    (command,) = read_commands(block("bash", None))
    words = [*command.split(), "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    run = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    n_passed = int(run.stdout.rsplit(" passed", 1)[0].split()[-1])
    assert n_passed > 30, run.stdout


def test_the_protocol_is_satisfied_and_every_kind_of_entry_is_fitted(folder: Path) -> None:
    from hyperbolic_secant import HyperbolicSecant  # type: ignore[import-not-found]

    noise = HyperbolicSecant()
    assert isinstance(noise, Noise)
    assert abs(float(noise.variance()) - 1.0) < 1e-12
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    latent = X @ np.array([[1.0, 0.0], [-0.5, 2.0]]).T + [0.5, 1.0]
    Y = np.clip(latent + [0.5, 1.0] * noise.sample(rng, (4000, 2)), 0.0, 3.0)
    Y[rng.random(Y.shape) < 0.1] = np.nan
    model = TobitRegressor(lower=0, upper=3, noise=noise).fit(X, Y)
    error = model.summary()["std_err"].to_numpy().reshape(2, 4)
    found = np.column_stack([model.coef_, model.intercept_, np.log(model.sigma_)])
    true = np.array([[1.0, 0.0, 0.5, np.log(0.5)], [-0.5, 2.0, 1.0, 0.0]])
    assert (np.abs(found - true) < 4.0 * error).all()
