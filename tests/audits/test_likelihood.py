"""The likelihood of single entries against mpmath, out to 1e8 standard deviations.

Compared: negative log likelihood, its gradient and its Hessian by the latent score and log σ, for
observed, left-, right- and interval-censored entries of every shipped family, NumPy reference and
compiled kernel alike (``tests/reference/likelihood``: 185 entries a family, 60 to 330 digits).

Agreement: 1e-12. The nll and its derivatives by the latent are compared relative to themselves,
however small; derivatives that involve log σ relative to the terms of the chain rule that add up to
them, which may cancel. Reached: 7e-13.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit import likelihood
from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian, Logistic, Noise, StudentT

# Numbers are read as text, since pandas 2 does not round all of them to the nearest.
TEXT = pd.read_csv(
    Path(__file__).parents[1] / "reference" / "likelihood" / "likelihood.csv", dtype=str
)
TABLE = TEXT.astype({name: float for name in TEXT.columns if name != "family"})
FAMILIES: dict[str, Noise] = {
    "gaussian": Gaussian(),
    "logistic": Logistic(),
    "t4": StudentT(df=4.0),
    "t2.5": StudentT(df=2.5),
}
CASES = [("numpy", family) for family in FAMILIES] + [("kernel", "gaussian")]


def natural_size(expected: pd.DataFrame) -> dict[str, FloatArray]:
    """By what to divide the error of every derivative."""
    ends = np.abs(expected[["low", "high"]].to_numpy())
    reach = np.where(np.isfinite(ends), ends, 0.0).max(axis=1)
    columns = expected.fillna(0.0)  # below 1e-300
    slope, bend = (np.abs(columns[name].to_numpy()) for name in ("latent", "latent_latent"))
    terms: dict[str, FloatArray] = {
        "log_sigma": reach * slope,
        "latent_log_sigma": slope + reach * bend,
        "log_sigma_log_sigma": reach * (slope + reach * bend),
    }
    return {
        name: np.maximum(np.abs(expected[name].to_numpy()), terms.get(name, np.zeros(1)))
        for name in likelihood.Derivatives._fields
    }


@pytest.mark.parametrize(("how", "family"), CASES)
def test_value_gradient_and_hessian_agree_with_mpmath(how: str, family: str) -> None:
    expected = TABLE[TABLE["family"] == family]
    low, high = (expected[[end]].to_numpy() for end in ("low", "high"))
    evaluate = likelihood.reference_evaluate if how == "numpy" else likelihood.evaluate
    found = evaluate(FAMILIES[family], low, high, np.zeros_like(low), np.ones(1))._asdict()
    for name, size in natural_size(expected).items():
        values, reference = found[name].ravel(), expected[name].to_numpy()
        held = ~np.isnan(reference)
        error = np.abs(values - reference)[held] / size[held]
        worst = expected[held].iloc[int(error.argmax())]
        assert error.max() <= 1e-12, f"{name} of [{worst['low']}, {worst['high']}]"
        # What the table leaves out is below 1e-300.
        assert np.abs(values[~held]).max(initial=0.0) <= 1e-300


@pytest.mark.parametrize("power", [-150, -40, 40, 150])
@pytest.mark.parametrize("family", FAMILIES)
def test_units_change_the_likelihood_by_their_logarithm(family: str, power: int) -> None:
    """Bit for bit, since powers of two round nothing: σ from 5e-46 to 1e45."""
    rows, unit = TABLE[TABLE["family"] == family], 2.0**power
    low, high = (rows[[end]].to_numpy() for end in ("low", "high"))
    observed = low == high
    latent, sigma = np.full_like(low, 0.5), np.array([0.75])
    here = likelihood.reference_evaluate(FAMILIES[family], low, high, latent, sigma)
    there = likelihood.reference_evaluate(
        FAMILIES[family], low * unit, high * unit, latent * unit, sigma * unit
    )
    expected = here.nll + np.where(observed, power * np.log(2.0), 0.0)
    np.testing.assert_allclose(there.nll, expected, rtol=1e-14, atol=1e-12)
    np.testing.assert_array_equal(there.latent * unit, here.latent)
    np.testing.assert_array_equal(there.log_sigma, here.log_sigma)
    np.testing.assert_array_equal(there.latent_latent * unit**2, here.latent_latent)
