"""Most tests look at 10,000 people, where a sample is close to its population."""

import hashlib
from dataclasses import FrozenInstanceError
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from deeptobit.datasets import ClinicalCohort, make_clinical_cohort, packaged_table

SEEDS = (1,)
NAMES = packaged_table("brain_regions")["name"].tolist()
LOBES = packaged_table("brain_regions")["lobe"].tolist()
every_population = pytest.mark.parametrize("nonlinear", [False, True], ids=["linear", "nonlinear"])
every_seed = pytest.mark.parametrize("seed", SEEDS)


@cache
def many_people(seed: int, nonlinear: bool = False) -> ClinicalCohort:
    return make_clinical_cohort(10_000, nonlinear=nonlinear, random_state=seed)


def share_at_bounds(cohort: ClinicalCohort) -> "pd.Series[float]":
    at_bound = cohort.Y.eq(pd.Series(cohort.lower)) | cohort.Y.eq(pd.Series(cohort.upper))
    return at_bound.sum() / cohort.Y.notna().sum()


def sha256(table: pd.DataFrame, digits: str) -> str:
    text = table.to_csv(float_format=digits, lineterminator="\n")
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("nonlinear", "digest_of_Y"),
    [
        (False, "19fa9f7b8fb03f25d11000c2dd5a4bd426b6e72f7e71e7b7b33109362cd6d700"),
        (True, "c73392a3ebeab659c1a7d99c0c08e14f896b058897ed8a3ccfe2d232ca037230"),
    ],
    ids=["linear", "nonlinear"],
)
def test_seed_0_is_frozen(nonlinear: bool, digest_of_Y: str) -> None:
    cohort = make_clinical_cohort(nonlinear=nonlinear, random_state=0)
    digest_of_X = "589d05f2c45d9e9467159f4ba1357caa7e06ce363dc2e7a9049baad4ab97012d"
    assert sha256(cohort.X, "%.6g") == digest_of_X
    assert sha256(cohort.Y, "%.0f") == digest_of_Y


@every_population
@pytest.mark.parametrize("n_subjects", [2, 670])
def test_data_are_complete_brains_and_integers_within_bounds(
    n_subjects: int, nonlinear: bool
) -> None:
    cohort = make_clinical_cohort(n_subjects, nonlinear=nonlinear, missing=0.1, random_state=1)
    assert cohort.X.shape == (n_subjects, 138)
    assert cohort.Y.shape == cohort.latent.shape == cohort.uncensored.shape == (n_subjects, 30)
    assert cohort.X.notna().to_numpy().all()
    assert (cohort.X > 0).to_numpy().all()
    assert list(cohort.lower) == list(cohort.upper) == list(cohort.Y.columns)
    assert len({(cohort.lower[name], cohort.upper[name]) for name in cohort.lower}) >= 8

    lower, upper = pd.Series(cohort.lower), pd.Series(cohort.upper)
    assert np.isfinite([lower, upper]).all()
    seen = cohort.Y.notna().to_numpy()
    assert 0.8 < seen.mean() < 1
    expected = cohort.uncensored.round().clip(lower, upper, axis=1).to_numpy()
    np.testing.assert_array_equal(cohort.Y.to_numpy()[seen], expected[seen])
    assert not np.signbit(cohort.Y.to_numpy()[cohort.Y.to_numpy() == 0]).any()


def test_features_have_the_names_of_freesurfer() -> None:
    names = list(make_clinical_cohort(2, random_state=0).X.columns)
    assert names[:2] == ["lh_bankssts_thickness", "lh_caudalanteriorcingulate_thickness"]
    assert names[33:35] == ["lh_insula_thickness", "rh_bankssts_thickness"]
    assert names[-3:] == ["rh_insula_area", "lh_WhiteSurfArea_area", "rh_WhiteSurfArea_area"]
    assert len(set(names)) == 138
    assert sum(name.endswith("_thickness") for name in names) == 68


@every_seed
def test_brains_have_realistic_sizes(seed: int) -> None:
    X = many_people(seed).X
    thickness, area = X.filter(like="_thickness"), X.filter(like="_area")
    assert thickness.mean().mean() == pytest.approx(2.5, abs=0.1)
    assert thickness.std().mean() == pytest.approx(0.15, abs=0.01)
    assert thickness.mean().between(1.5, 3.6).all()
    for side in ("lh", "rh"):
        hemisphere = area[f"{side}_WhiteSurfArea_area"]
        regions = area.filter(like=f"{side}_").drop(columns=hemisphere.name)
        assert regions.shape[1] == 34
        assert regions.mean().between(200, 8000).all()
        assert hemisphere.mean() == pytest.approx(85_000, rel=0.05)
        assert (hemisphere / regions.sum(axis=1)).between(0.98, 1.04).all()


@every_seed
def test_homologues_and_neighbours_correlate(seed: int) -> None:
    correlation = many_people(seed).X.corr()
    same_lobe = np.equal.outer(LOBES, LOBES)
    for measure in ("thickness", "area"):
        left = [f"lh_{name}_{measure}" for name in NAMES]
        right = [f"rh_{name}_{measure}" for name in NAMES]
        homologues = np.diag(correlation.loc[left, right])
        assert homologues.min() > 0.7
        assert homologues.max() < 0.85
        between_regions = correlation.loc[left, left].to_numpy()
        neighbours = between_regions[same_lobe & ~np.eye(len(NAMES), dtype=bool)]
        distant = between_regions[~same_lobe]
        assert neighbours.min() > 0.25
        assert neighbours.mean() > distant.mean() + 0.1
        assert distant.min() > 0.1


@every_seed
def test_one_factor_of_atrophy_is_strongest_in_temporal_and_parietal_thickness(seed: int) -> None:
    thickness = many_people(seed).X.filter(like="_thickness")
    loading = np.abs(PCA(1).fit(StandardScaler().fit_transform(thickness)).components_[0])
    diseased = np.array([lobe in ("temporal", "parietal") for lobe in LOBES] * 2)
    assert loading[diseased].min() > loading[~diseased].mean()
    area = many_people(seed).X.filter(like="_area")
    assert PCA(1).fit(StandardScaler().fit_transform(area)).explained_variance_ratio_[0] > 0.4


@every_population
@every_seed
def test_explained_variance_is_that_of_the_sample(seed: int, nonlinear: bool) -> None:
    cohort = many_people(seed, nonlinear)
    noise = cohort.uncensored - cohort.latent
    realised = cohort.latent.var() / (cohort.latent.var() + noise.var())
    assert realised.to_numpy() == pytest.approx(cohort.explained_variance.to_numpy(), abs=0.02)
    # The noise is independent of the brain, so it adds up with the latent.
    for name in cohort.Y.columns:
        assert abs(noise[name].corr(cohort.latent[name])) < 0.03
    spread = np.sort(cohort.explained_variance)
    assert spread[0] == 0.05
    assert spread[-1] == 0.40
    assert np.diff(spread).max() < 0.035


@every_population
@pytest.mark.parametrize("seed", range(2))
def test_a_third_of_the_scores_often_reach_a_bound(seed: int, nonlinear: bool) -> None:
    share = share_at_bounds(make_clinical_cohort(nonlinear=nonlinear, random_state=seed))
    assert share.between(0.1, 0.5).sum() >= 10
    assert share.max() <= 0.5
    assert share.min() < 0.05


@every_seed
def test_a_third_of_the_scores_have_noise_that_is_not_gaussian(seed: int) -> None:
    cohort = many_people(seed)
    noise = cohort.uncensored - cohort.latent
    skewness, kurtosis = noise.skew().abs(), noise.kurt()
    shape = cohort.noise_shape
    assert shape.value_counts().to_dict() == {"gaussian": 20, "skewed": 6, "heavy": 4}
    assert skewness[shape == "gaussian"].max() < 0.1
    assert kurtosis[shape == "gaussian"].abs().max() < 0.2
    assert skewness[shape == "skewed"].min() > 1
    assert skewness[shape == "heavy"].max() < 0.8
    assert kurtosis[shape == "heavy"].min() > 2


@every_population
@every_seed
def test_scores_share_five_effects_beside_their_own(seed: int, nonlinear: bool) -> None:
    eigenvalues = np.linalg.eigvalsh(many_people(seed, nonlinear).latent.corr())[::-1]
    assert eigenvalues[4] > 1.5 * eigenvalues[5]
    assert 0.75 < eigenvalues[:5].sum() / 30 < 0.9
    assert eigenvalues[-1] > 0.02


@every_population
@every_seed
def test_atrophy_makes_every_score_worse(seed: int, nonlinear: bool) -> None:
    cohort = many_people(seed, nonlinear)
    diseased = [n for n, lobe in zip(NAMES, LOBES, strict=True) if lobe in ("temporal", "parietal")]
    thickness = cohort.X[[f"{side}_{name}_thickness" for side in ("lh", "rh") for name in diseased]]
    thinning = -thickness.mean(axis=1)
    high_is_bad = cohort.Y.columns.str.match("ADAS|CDRSB|FAQ|GDS|NPIQ|TMT")
    assert high_is_bad.sum() == 15
    assert cohort.latent.loc[:, high_is_bad].corrwith(thinning).min() > 0.2
    assert cohort.latent.loc[:, ~high_is_bad].corrwith(thinning).max() < -0.2


@pytest.mark.parametrize("missing", [0.0, 0.02, 0.6])
def test_missing_share_is_kept_and_higher_at_month_6(missing: float) -> None:
    lost = make_clinical_cohort(10_000, missing=missing, random_state=0).Y.isna().mean()
    late = lost.index.str.endswith("_m06")
    assert late.sum() == 7
    assert lost.mean() == pytest.approx(missing, abs=0.002)
    assert lost[late].to_numpy() == pytest.approx(1 - (1 - missing) ** 2, abs=0.015)
    assert missing == 0 or lost[late].min() > lost[~late].max()


@every_population
def test_the_population_depends_on_the_seed_and_not_on_the_size(nonlinear: bool) -> None:
    small = make_clinical_cohort(300, nonlinear=nonlinear, random_state=5)
    large = make_clinical_cohort(600, nonlinear=nonlinear, random_state=5)
    # The larger cohort begins with the brains of the smaller one: they must score the same.
    pd.testing.assert_frame_equal(large.X[:300], small.X)
    assert large.latent[:300].to_numpy() == pytest.approx(small.latent.to_numpy())
    assert (large.lower, large.upper) == (small.lower, small.upper)
    assert large.explained_variance.equals(small.explained_variance)


def test_each_seed_has_its_own_effects_and_its_own_people() -> None:
    one, again = (make_clinical_cohort(400, random_state=0) for _ in range(2))
    pd.testing.assert_frame_equal(one.X, again.X)
    pd.testing.assert_frame_equal(one.Y, again.Y)
    other = make_clinical_cohort(400, random_state=1)
    assert not np.allclose(one.X, other.X)
    effects = LinearRegression().fit(one.X, one.latent)
    assert effects.score(one.X, one.latent) == pytest.approx(1)
    assert effects.score(other.X, other.latent) < 0.8


@every_seed
def test_a_nonlinear_cohort_keeps_its_people_but_not_its_linearity(seed: int) -> None:
    straight, bent = many_people(seed), many_people(seed, nonlinear=True)
    pd.testing.assert_frame_equal(straight.X, bent.X)
    assert straight.explained_variance.equals(bent.explained_variance)
    unseen = {
        name: 1 - LinearRegression().fit(cohort.X, cohort.latent).score(cohort.X, cohort.latent)
        for name, cohort in {"straight": straight, "bent": bent}.items()
    }
    assert unseen["straight"] < 1e-9
    assert 0.35 < unseen["bent"] < 0.65


@every_seed
def test_a_nonlinear_cohort_has_signal_that_only_a_curved_model_finds(seed: int) -> None:
    def held_out_r2(nonlinear: bool, degree: int) -> float:
        cohort = many_people(seed, nonlinear)
        Y = cohort.Y.fillna(cohort.Y.mean())
        components = make_pipeline(StandardScaler(), PCA(10, whiten=True))
        model = make_pipeline(components, PolynomialFeatures(degree), Ridge(10.0))
        return float(model.fit(cohort.X[:5000], Y[:5000]).score(cohort.X[5000:], Y[5000:]))

    assert held_out_r2(nonlinear=True, degree=2) > 1.4 * held_out_r2(nonlinear=True, degree=1) > 0
    assert held_out_r2(nonlinear=False, degree=2) < held_out_r2(nonlinear=False, degree=1)


def test_the_cohort_is_frozen() -> None:
    cohort = make_clinical_cohort(2, random_state=0)
    with pytest.raises(FrozenInstanceError):
        cohort.X = cohort.Y  # type: ignore[misc]


@pytest.mark.parametrize("n_subjects", [-1, 0, 1, 5.5])
def test_too_few_subjects_are_refused(n_subjects: Any) -> None:
    with pytest.raises(
        ValueError, match=f"n_subjects must be a whole number, at least 2; got {n_subjects}"
    ):
        make_clinical_cohort(n_subjects)


@pytest.mark.parametrize("missing", [-0.1, 1.0, float("nan")])
def test_an_impossible_missing_share_is_refused(missing: float) -> None:
    with pytest.raises(ValueError, match="missing must be at least 0 and below 1, got"):
        make_clinical_cohort(missing=missing)
