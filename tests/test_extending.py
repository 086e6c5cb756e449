"""A newcomer who follows docs/extending.md, and nothing else, has a penalty and a noise family."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor, TobitRegressor
from deeptobit.likelihood import Noise
from deeptobit.penalties import Penalty
from tests.estimators.subspaces import relative_gradient
from tests.pages import Block, Reader, read_blocks, read_commands

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "extending.md"
FAMILIES = "tests/likelihood/families.py"


def block(language: str, title: str | None) -> Block:
    (found,) = (b for b in read_blocks(PAGE) if (b.language, b.title) == (language, title))
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the page, where they can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("smooth.py", "hyperbolic_secant.py"):
        Reader(PAGE).follow(block("python", name))
    return tmp_path


def test_the_penalty_is_the_quadratic_form_of_the_page(folder: Path) -> None:
    from smooth import Smooth  # type: ignore[import-not-found]

    penalty, V = Smooth(3.0), np.random.default_rng(0).normal(size=(2, 5))
    assert isinstance(penalty, Penalty)
    expected = 0.5 * (V**2).sum() + 1.5 * sum(
        ((V[:, d + 1] - V[:, d]) ** 2).sum() for d in range(4)
    )
    np.testing.assert_allclose(penalty.value(V), expected)


def test_a_layer_and_a_network_are_stationary_under_it(folder: Path) -> None:
    from smooth import Smooth

    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 8))
    Y = np.maximum(X @ rng.normal(size=(8, 3)) + rng.normal(size=(150, 3)), 0.0)
    layer = SubspaceTobitRegressor(2, alpha=0.1, penalty=Smooth(5.0), tol=1e-8).fit(X, Y)
    assert layer.history_["converged"]
    assert relative_gradient(layer, X, Y) < 1e-7
    network = SubspaceNetworkRegressor(2, 2, alpha=0.1, penalty=Smooth(5.0)).fit(X, Y)
    assert np.isfinite(network.predict(X)).all()
    with pytest.raises(ValueError, match="solver='online' supports only penalty='ridge'"):
        clone(layer).set_params(solver="online").fit(X, Y)
    with pytest.raises(TypeError, match="is of type Smooth"):
        layer.save(folder / "model.deeptobit")


def run_shipped(folder: Path, script: str) -> None:
    """Run a script with the copy of the library in the folder."""
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def ship(folder: Path, file: str, listing: str, before: str, name: str) -> None:
    """Add a file of the page to a copy of the library, as the page says."""
    shutil.copytree(ROOT / "src" / "deeptobit", folder / "deeptobit")
    path = folder / "deeptobit" / listing
    shutil.move(folder / file, path.parent)
    text = path.read_text()
    start, end = text.split(before, 1)
    added = block("python", f"import in src/deeptobit/{listing}").text
    end, rest = end.split("\n}", 1)
    line = block("python", f"line of {name}").text.rstrip("\n")
    path.write_text(f"{start}{added}{before}{end}\n{line}\n}}{rest}")


def test_the_penalty_ships_with_its_file_and_the_line_that_lists_it(folder: Path) -> None:
    ship(folder, "smooth.py", "penalties/__init__.py", "\nPENALTIES", "PENALTIES")
    script = """
import numpy as np
from deeptobit import SubspaceTobitRegressor, load
from deeptobit.penalties import PENALTIES

X = np.random.default_rng(0).normal(size=(60, 4))
Y = np.maximum(X[:, :2] + 1.0, 0.0)
for penalty in ("smooth", PENALTIES["smooth"](2.0)):
    model = SubspaceTobitRegressor(1, alpha=0.1, penalty=penalty).fit(X, Y)
    model.save("model.deeptobit")
    again = load("model.deeptobit")
    assert again.penalty == penalty
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
"""
    run_shipped(folder, script)


def test_the_family_ships_with_its_file_and_the_line_that_lists_it(folder: Path) -> None:
    ship(folder, "hyperbolic_secant.py", "likelihood/gaussian.py", "\nFAMILIES", "FAMILIES")
    script = """
import numpy as np
from deeptobit import TobitRegressor, load
from deeptobit.app.report.patient import render_patient_page
from deeptobit.app.study import config

X = np.random.default_rng(0).normal(size=(60, 4))
Y = np.maximum(X[:, :2] + 1.0, 0.0)
model = TobitRegressor(noise="hyperbolic_secant").fit(X, Y)
model.save("model.deeptobit")
again = load("model.deeptobit")
assert type(again.noise_) is type(model.noise_)
np.testing.assert_array_equal(again.predict(X), model.predict(X))
study = "[data]\\nfile = 'a.csv'\\n[model]\\nnoise = 'hyperbolic_secant'\\n[targets]\\ny = {}\\n"
study = config.parse_study(config.Source(config.Path("a.toml"), study))
assert study.model.options()["noise"] == "hyperbolic_secant"
try:
    render_patient_page(model)
except ValueError as error:
    assert "cannot compute HyperbolicSecant() noise" in str(error)
else:
    raise AssertionError("a page without the family's functions")
"""
    run_shipped(folder, script)


def test_the_family_passes_what_every_family_passes(folder: Path) -> None:
    for part in ("likelihood", "reference/special"):
        shutil.copytree(ROOT / "tests" / part, folder / "tests" / part)
    shutil.copy(ROOT / "tests" / "__init__.py", folder / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    with (folder / FAMILIES).open("a") as families:
        families.write(block("python", f"at the end of {FAMILIES}").text)
    (command,) = read_commands(block("bash", None))
    words = [*command.split(), "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    run = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
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
