"""How many people a study needs: simulated outcomes with their floors and ceilings, fitted."""

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import norm

from deeptobit.app.study.fitted import FittedStudy
from deeptobit.app.study.tables import StudyError, did_you_mean
from deeptobit.estimators import TobitRegressor
from deeptobit.exceptions import CensoringWarning
from deeptobit.likelihood import Gaussian, Noise, Predictive, of_task

_REPEATS = 10  # outcomes simulated over the same people, and fitted together
_ROUNDS = 8
_FIRST, _FEWEST, _MOST = 100, 10, 10**5  # people
_MANY = 2000
_SETTLED = 0.05  # change of their number


@dataclass(frozen=True)
class Plan:
    r"""An outcome of people who differ in one feature z of interest and in a score of all others.

    .. math:: y = \mathrm{clip}(\mu + \beta z + s r + \sigma\varepsilon,\, l, u)

    with z and r of a normal shape, of variance 1 and a correlation.

    Parameters
    ----------
    effect : float
        β: what one standard deviation of the feature does to the score before censoring.
    mean, sigma : float
        μ and σ.
    others : float
        s, the standard deviation of what other features explain; they are in the model.
    correlation : float
        Of the feature with the score of the others.
    lower, upper : float
    noise : Noise
        The family of ε.
    """

    effect: float
    mean: float
    sigma: float
    others: float = 0.0
    correlation: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf
    noise: Noise = Gaussian()  # noqa: RUF009  (it has no state)

    def simulate(
        self, n_people: int, n_repeats: int, confidence: float, rng: np.random.Generator
    ) -> "pd.Series[float]":
        """Power of the test that β is 0, and the mean width of its interval, over repetitions.

        ``at_lower`` and ``at_upper`` are the shares of outcomes at the bounds.
        """
        z, rest = rng.normal(size=(2, n_people))
        rest = self.correlation * z + np.sqrt(1.0 - self.correlation**2) * rest
        X = np.column_stack([z, rest]) if self.others > 0.0 else z[:, None]
        latent = self.mean + X @ np.array([self.effect, self.others])[: X.shape[1]]
        entries = np.broadcast_to(latent[:, None], (n_people, n_repeats))
        sigma = np.full(n_repeats, self.sigma)
        Y = Predictive(self.noise, entries, sigma, self.lower, self.upper).sample(rng, 1)[..., 0]
        model = TobitRegressor(lower=self.lower, upper=self.upper, noise=self.noise)
        # What is not determined counts as not significant.
        with warnings.catch_warnings(action="ignore", category=CensoringWarning):
            table = model.fit(X, Y).summary(confidence=confidence).xs("x0", level="term")
        width = (table["ci_high"] - table["ci_low"]).fillna(np.inf)
        found = {
            "people": float(n_people),
            "power": float((table["p_value"] < 1.0 - confidence).mean()),
            "width": float(width.median()),
            "at_lower": float(np.mean(np.equal(Y, self.lower))),
            "at_upper": float(np.mean(np.equal(Y, self.upper))),
        }
        return pd.Series(found)

    def search(
        self,
        *,
        power: float | None = None,
        width: float | None = None,
        confidence: float = 0.95,
        n_repeats: int = 400,
        seed: int = 0,
    ) -> pd.DataFrame:
        """The number of people with this power, or an interval of this width.

        Standard errors fall with the root of the number of people, which is scaled from one
        simulation to the next until it stays; the last row is the answer.

        Examples
        --------
        >>> plan = Plan(effect=1.0, mean=27.0, sigma=3.0, upper=30.0)
        >>> int(plan.search(power=0.8, n_repeats=200)["people"].iloc[-1]) // 10
        8
        """
        if (power is None) == (width is None):
            raise StudyError("ask for a power or for a width, not both")
        if power is not None and not (0.0 < power < 1.0 and self.effect != 0.0):
            raise StudyError("a power lies between 0 and 1, and needs an effect that is not 0")
        if width is not None and not width > 0.0:
            raise StudyError(f"the width of an interval must be positive; got {width:g}")
        if not self.sigma > 0.0 or not self.lower < self.upper or not abs(self.correlation) < 1.0:
            raise StudyError("the noise must be positive, floors below ceilings, and |r| below 1")
        rng, people, tried, rates = np.random.default_rng(seed), _FIRST, [], []
        level = float(norm.ppf(0.5 + 0.5 * confidence))
        for _ in range(_ROUNDS):
            # Large studies differ little from one another, and take long to simulate.
            repeats = max(_REPEATS, n_repeats * min(people, _MANY) // people)
            parts = [
                self.simulate(people, min(_REPEATS, n_repeats), confidence, rng)
                for _ in range(max(1, repeats // _REPEATS))
            ]
            found = pd.concat(parts, axis=1).mean(axis=1)
            tried.append(found)
            before = people
            if width is None and not 0.05 < found["power"] < 0.97:  # too far away to say more
                people = people // 4 if found["power"] >= 0.97 else 4 * people
            else:
                if width is not None:
                    rate, wanted = 1.0 / found["width"], 1.0 / width
                else:  # the mean of the test statistic, from the share beyond its critical value
                    rate = max(norm.ppf(found["power"]) + level, 0.2)
                    wanted = norm.ppf(power or 0.5) + level
                rates.append(rate / np.sqrt(people))
                people = min(round(float((wanted / np.mean(rates)) ** 2)), 16 * before)
            people = max(people, _FEWEST)
            if people > _MOST:
                why = "the effect is too small beside the noise, or most outcomes are at a bound"
                raise StudyError(f"even {_MOST:,} people are not enough; {why}")
            if abs(people - before) <= _SETTLED * before:
                break
            if abs(people - before) > before:  # far away, that simulation says little
                rates.clear()
        tried[-1]["people"] = float(people)
        return pd.DataFrame(tried)


def plan_of_study(fitted: FittedStudy, target: str, feature: str) -> Plan:
    """The plan of a study like one that was fitted: scores, effect, noise and bounds of its model.

    Scores are those of its held-out rows. What other features explain is the rest of their
    variance; the model does not know how the feature is correlated with them, 0 is assumed.
    """
    model, tasks = fitted.model, list(fitted.model.target_names_)
    features = list(model.feature_names_in_)
    for name, known, what in ((target, tasks, "target"), (feature, features, "feature")):
        if name not in known:
            raise StudyError(f"the model has no {what} {name!r}{did_you_mean(name, known)}")
    task, column = tasks.index(target), features.index(feature)
    is_deep = len(getattr(model, "layers_", "1")) > 1
    if is_deep or not hasattr(model, "coef_"):
        what = "network of several layers" if is_deep else "model with trees"
        raise StudyError(f"a {what} has no one effect of a feature; state it in place of the model")
    effect = float(model.coef_[task, column] * model.feature_scale_[column])
    latent = fitted.held_out.predictive.latent[:, task]
    others = float(np.sqrt(max(latent.var() - effect**2, 0.0)))
    noise = of_task(model.noise_, task)
    sigma, lower, upper = (float(of[task]) for of in (model.sigma_, model.lower_, model.upper_))
    return Plan(effect, float(latent.mean()), sigma, others, 0.0, lower, upper, noise)
