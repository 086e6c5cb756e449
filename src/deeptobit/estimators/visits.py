"""Predictions at visits of people, known or not, and the random effects that visits allow."""

import os
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from deeptobit import mixed
from deeptobit.arrays import FloatArray, is_dask, read_groups
from deeptobit.estimators import inputs
from deeptobit.estimators.base import CensoredRegressor
from deeptobit.estimators.formula import check_columns
from deeptobit.estimators.inputs import Limits
from deeptobit.estimators.people import PeopleSeen, PersonRows, VisitRows, plain, read_time
from deeptobit.exceptions import warn
from deeptobit.files import models
from deeptobit.inspection import Reference
from deeptobit.likelihood import Gaussian, Noise, Predictive
from deeptobit.runtime import one_blas_thread


def _at_visits(method: Callable[..., Any]) -> Any:
    """The same method with ``groups`` and ``time`` of the rows: what is known of people is used."""

    @wraps(method)
    def at_visits(
        self: Any, X: Any, *args: Any, groups: Any = None, time: Any = None, **others: Any
    ) -> Any:
        with one_blas_thread():  # products are those of a person
            return method(self._at(X, groups, time), X, *args, **others)

    own = signature(at_visits, follow_wrapped=False).parameters
    given = [*signature(method).parameters.values(), own["groups"], own["time"]]
    at_visits.__signature__ = signature(method).replace(parameters=given)  # type: ignore[attr-defined]
    return at_visits


def settle_effects(wanted: dict[str, Any], n_tasks: int, seen: PeopleSeen) -> None:
    """Refuse random effects that these visits cannot have, and settle what is not free."""
    if seen.moving and not seen.varying:
        warn(
            "no feature changes between visits of a person, so that people do not change on "
            "average; put time into X"
        )
    if not seen.twice:
        if seen.named and wanted["effects"] != 0:
            warn(
                "nobody has two visits with an outcome, so that random effects cannot be told "
                "from noise and are left out; check groups"
            )
        wanted |= {"effects": 0, "visit_rank": wanted["visit_rank"] or 0}
    if wanted["effects"] == 2 and not seen.timed:
        raise ValueError("random slopes are slopes in time: pass time, one number per row")
    if wanted["effects"] == 2 and not seen.moving:
        raise ValueError(
            "random slopes need people with visits at different times, and nobody has; use "
            "random_effects='intercept'"
        )
    if wanted["effects"] is None and not seen.moving:
        wanted["effects"] = 1
    if n_tasks == 1:
        wanted |= {"person_rank": 0, "visit_rank": 0}
    if wanted["effects"] == 0:
        wanted["person_rank"] = 0
    if wanted["person_rank"] == 0 and wanted["shrinkage"] is None:
        wanted["shrinkage"] = 0.0
    for name, most in (("person_rank", n_tasks), ("visit_rank", n_tasks - 1)):
        wanted[name] = None if wanted[name] is None else min(wanted[name], most)


class VisitRegressor(CensoredRegressor):
    """Base of a model with random effects: what is known of a person is used.

    A subclass sets ``_effects`` and ``_units`` in ``fit``, and ``_people`` by ``_remember``.
    """

    effects_: tuple[str, ...]
    _people: mixed.KnownPeople
    _effects: mixed.Effects
    _units: mixed.EffectUnits
    random_effects: str
    _asked: tuple[Any, Any]  # groups and time
    _people_left_out: bool

    def _forget(self, *, left_out: bool) -> None:
        """Nobody is known; ``left_out``: though there were people."""
        self._people = mixed.KnownPeople.nobody(*self._effects.own.shape[:2])
        self._people_left_out = left_out

    def _remember(self, people: PersonRows) -> None:
        """Know these visits too; sites are found."""
        if not people.named:
            return
        units, order, rows = self._units, people.order, people.rows
        low, high, mean = (
            (each[order] - units.location) / units.scale
            for each in (rows.low, rows.high, self._latent(rows.X))
        )
        time = np.full(len(order), np.nan) if people.time is None else people.time[order]
        z = units.z(people.time, len(order), len(self.effects_))[order]
        tau, nu = np.zeros((2, *low.shape))
        found = mixed.KnownPeople(people.labels, people.starts, low, high, mean, z, time, tau, nu)
        self._people = self._people.with_visits(found, self._effects)

    def _read_features(self, X: Any) -> Any:
        return inputs.dense(super()._read_features(X))

    def _predictive_at(self, matrix: Any, lower: Any, upper: Any) -> Predictive:
        """Predictive distributions at visits of the people who were asked for."""
        z, known = self._asked_rows(matrix.shape[0])
        scale, shift = self._units.scale, np.zeros((len(z), len(self.target_names_)))
        variance = self._effects.variances(z)
        own = np.square(self._effects.visit).sum(axis=1) + np.square(self._effects.sigma)
        for person, rows in known:
            posterior = self._people.posterior(person, self._effects)
            shift[rows], spread = posterior.at(mixed.person_loads(z[rows], self._effects))
            variance[rows] = spread + own
        latent = self._latent(matrix) + scale * shift
        return self._predictive_of(latent, scale * np.sqrt(variance), Gaussian(), lower, upper)

    def _asked_rows(self, n_rows: int) -> tuple[FloatArray, list[tuple[int, Any]]]:
        """Numbers z of the rows, and the rows of every person who is known."""
        groups, time = vars(self).get("_asked", (None, None))
        when, q = read_time(time, n_rows), len(self.effects_)
        if q > 1 and when is None:
            raise ValueError("this model has random slopes: pass time, one number per row")
        z = self._units.z(when, n_rows, q)
        if groups is None:
            return z, []
        places, labels = self._people.places(), read_groups(groups, n_rows)
        if not places and vars(self).get("_people_left_out", False):
            raise ValueError(
                "this model was saved without what it knew of people, or fitted to rows beyond "
                "memory: pass their visits to condition first, save with people=True, or leave "
                "groups out"
            )
        people = mixed.by_person(labels)
        asked, known = ({isinstance(name, str) for name in names} for names in (labels, places))
        if asked and known and not asked & known:
            kinds = ("texts", "numbers") if asked == {True} else ("numbers", "texts")
            warn(
                f"groups are {kinds[0]}, but the model's people are labelled by {kinds[1]}; "
                "none matches"
            )
        return z, [(places[label], rows) for label, rows in people if label in places]

    @classmethod
    def _read_bars(cls, bars: list[tuple[str, str]], data: pd.DataFrame) -> dict[str, str]:
        """People and time from ``(1 + time | person)``."""
        if len(bars) != 1:
            raise ValueError(
                "a formula of a mixed model has one bar, as in 'MMSE ~ age + (1 | person)' or "
                f"'… + (1 + time | person)'; this one has {len(bars)}"
            )
        ((effects, person),) = bars
        terms = [term.strip() for term in effects.split("+")]
        slopes = [term for term in terms if term != "1"]
        if len(slopes) > 1 or "0" in terms:
            raise ValueError(
                f"random effects are '1' or '1 + time', with one column as time; got {effects!r}"
            )
        columns = {"groups": person} | ({"time": slopes[0]} if slopes else {})
        check_columns(list(columns.values()), data)
        return columns

    def _at(self, X: Any, groups: Any, time: Any) -> Self:
        """The same model, asked for visits of some people.

        A formula says in which columns of a data frame they are. A method that asks another one
        passes on what it was asked for.
        """
        asked, columns = copy(self), vars(self).get("_visit_columns", {})
        given, known = {"groups": groups, "time": time}, vars(self).get("_asked", (None, None))
        for (name, value), before in zip(given.items(), known, strict=True):
            value = before if value is None else value
            if value is None and columns.get(name) in getattr(X, "columns", ()):
                value = X[columns[name]]
            given[name] = value
        if is_dask(X) and any(value is not None for value in given.values()):
            raise ValueError("groups and time need rows in memory; predict the partitions by hand")
        asked._asked = given["groups"], given["time"]
        return asked

    predict = _at_visits(CensoredRegressor.predict)
    """Predict Y at visits, (N, T), given what is known of the people (see Notes)."""
    predict_bound_proba = _at_visits(CensoredRegressor.predict_bound_proba)
    """P(y at its lower bound) and P(y at its upper bound), each (N, T)."""
    predict_quantile = _at_visits(CensoredRegressor.predict_quantile)
    """Quantiles of y: (N, T) for a scalar q, (Q, N, T) for a vector."""
    predict_interval = _at_visits(CensoredRegressor.predict_interval)
    """Central intervals that hold y with the given probability, each end (N, T)."""
    predict_distribution = _at_visits(CensoredRegressor.predict_distribution)
    """All of these as a table with one row per visit and outcome."""
    residuals = _at_visits(CensoredRegressor.residuals)
    """Randomised quantile residuals, (N, T)."""
    score = _at_visits(CensoredRegressor.score)
    """R² of E[y], averaged over outcomes."""
    score_log = _at_visits(CensoredRegressor.score_log)
    """Mean log density per entry, averaged over outcomes; every row is taken by itself."""

    sample_y = _at_visits(CensoredRegressor.sample_y)
    """Draws of y, (N, T, S): joint over outcomes, and over the rows of one person."""

    def _draws(
        self, X: Any, n_samples: int, rng: np.random.Generator, lower: Limits, upper: Limits
    ) -> FloatArray:
        check_is_fitted(self)
        matrix = self._read_features(X)
        n_rows = len(matrix)
        z, known = self._asked_rows(n_rows)
        effects, places = self._effects, {int(rows[0]): person for person, rows in known}
        visit = rng.standard_normal((n_samples, n_rows, effects.visit.shape[1])) @ effects.visit.T
        noise = rng.standard_normal((n_samples, n_rows, len(effects.sigma))) * effects.sigma
        draws = visit + noise
        for _, rows in mixed.by_person(read_groups(self._asked[0], n_rows)):
            loads = mixed.person_loads(z[rows], effects)
            u = rng.standard_normal((n_samples, loads.shape[2]))
            if int(rows[0]) in places:
                posterior = self._people.posterior(places[int(rows[0])], effects)
                u = posterior.mean + u @ posterior.root.T
            draws[:, rows] += np.einsum("ntk,sk->snt", loads, u)
        latent = self._latent(matrix) + self._units.scale * draws
        y = self._predictive_of(latent[0], self.sigma_, Gaussian(), lower, upper)
        return np.moveaxis(y.recorded(latent), 0, -1)

    def condition(
        self,
        X: Any,
        y: Any,
        *,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
        lower: Limits = None,
        upper: Limits = None,
    ) -> Self:
        """A model that also knows these visits, of new people or known ones, without a new fit.

        Parameters
        ----------
        X, y, groups, time, lower, upper
            As in :meth:`fit`.
        """
        matrix, targets = self._read_pair(X, y, lower, upper)
        groups, time = self._at(X, groups, time)._asked
        if groups is None:
            raise ValueError("condition needs groups: the person of every row")
        known = matrix, targets.low, targets.high, np.ones(len(targets)), groups, time
        people = PersonRows.read(VisitRows(*known))
        if len(self.effects_) > 1 and people.time is None:
            raise ValueError("this model has random slopes: pass time, one number per row")
        model = copy(self)
        model._remember(people)
        return model

    @_at_visits
    def predict_change_proba(
        self, X: Any, change: ArrayLike, *, reference: ArrayLike | None = None
    ) -> FloatArray:
        """Probability that y has changed by at least ``change``, (N, T).

        Parameters
        ----------
        X, groups, time
            Visits to come.
        change : number or array of shape (T,)
            −3 asks for a loss of three points or more, 3 for a gain.
        reference : array of shape (T,) or (N, T), optional
            What is compared with; by default the last recorded score of the person.
        """
        y, n_tasks = self._predictive(X), len(self.target_names_)
        labels = read_groups(self._asked[0], len(y.latent))
        changes = np.broadcast_to(np.asarray(change, dtype=np.float64), n_tasks)
        if not (np.isfinite(changes) & (changes != 0.0)).all():
            raise ValueError(
                f"change must be a number other than 0, or one per outcome; got {change!r}"
            )
        if reference is None:
            base = self._people.last_recorded(labels, self._units.location, self._units.scale)
            for row, task in np.argwhere(np.isnan(base))[:1].tolist():
                raise ValueError(
                    f"no score of {self.target_names_[task]!r} is known of person "
                    f"{plain(labels[row])!r}; pass reference, or the person's visits to condition"
                )
        else:
            base = np.asarray(reference, dtype=np.float64).reshape(-1, n_tasks)
            base = np.broadcast_to(base, (len(labels), n_tasks))
        below, at_or_below = y.cdf(base + changes)
        return self._drop_task_axis(np.where(changes < 0.0, at_or_below, 1.0 - below), X)

    def sensitivity(
        self, X: Any, shifts: ArrayLike, *, groups: ArrayLike, time: ArrayLike
    ) -> pd.DataFrame:
        """How forecasts and slopes move if those who left did worse than visits at random say.

        Rows later than the last visit that is known of their person are taken to lie ``shifts``
        away from what the model says of their scores before censoring (delta adjustment); nothing
        is refitted.

        Parameters
        ----------
        X, groups, time
            Visits as planned, say everybody at every time.
        shifts : sequence of numbers
            In units of the outcomes; −2: two points lower than predicted.

        Returns
        -------
        DataFrame
            By (shift, target): the mean ``forecast`` over all rows, the least-squares ``slope`` of
            the scores before censoring in time, and the share of rows that were ``shifted``.

        Examples
        --------
        >>> import numpy as np
        >>> from deeptobit import MixedTobitRegressor
        >>> rng = np.random.default_rng(0)
        >>> person, time = np.repeat(np.arange(60), 3), np.tile([0.0, 1.0, 2.0], 60)
        >>> y = np.clip(8 - time + rng.normal(size=60)[person] + rng.normal(size=180), 0, 10)
        >>> came = (time < 2) | (person % 2 == 0)
        >>> X = time[:, None]
        >>> model = MixedTobitRegressor(upper=10).fit(
        ...     X[came], y[came], groups=person[came], time=time[came]
        ... )
        >>> model.sensitivity(X, [0.0, -1.0], groups=person, time=time).round(2)
                       forecast  slope  shifted
        shift  target
         0.0   y           6.93  -1.00     0.17
        -1.0   y           6.76  -1.25     0.17
        """
        amounts = np.atleast_1d(np.asarray(shifts, dtype=np.float64))
        if amounts.ndim != 1 or not np.isfinite(amounts).all():
            raise ValueError(f"shifts must be finite numbers; got {shifts!r}")
        y = self._at(X, groups, time)._predictive(X)
        when, people = np.asarray(time, dtype=np.float64), self._people
        if np.isnan(people.time).any():
            raise ValueError("the known visits have no times; fit with time")
        latest = np.maximum.reduceat(people.time, people.starts[:-1]) if people.labels else ()
        last = dict(zip(people.labels, latest, strict=True))
        left = when > [last.get(label, -np.inf) for label in np.asarray(groups)]
        away = when - when.mean()
        rows = {}
        for amount in amounts.tolist():
            latent = y.latent + amount * left[:, None]
            mean = replace(y, latent=latent).mean().mean(axis=0)
            slope = away @ latent / max(float(away @ away), np.finfo(float).tiny)
            for task, name in enumerate(self.target_names_):
                rows[amount, name] = float(mean[task]), float(slope[task]), float(left.mean())
        index = pd.MultiIndex.from_tuples(rows, names=["shift", "target"])
        return pd.DataFrame(list(rows.values()), index, ["forecast", "slope", "shifted"])

    @property
    def random_effects_(self) -> pd.DataFrame:
        """Mean, standard error and 95 % interval of b, by (person, target, effect)."""
        check_is_fitted(self)
        effects, n_tasks, q = self._effects, len(self.target_names_), len(self.effects_)
        by_task = self._units.of_effects(q)
        # Scores at z = (1, 0) and (0, 1) are the effects themselves.
        loads = np.moveaxis(mixed.person_loads(np.eye(q), effects), 0, 1)
        loads = (by_task @ loads).reshape(n_tasks * q, loads.shape[2])
        with one_blas_thread():
            found = [
                self._people.posterior(person, effects).at(loads)
                for person in range(len(self._people.labels))
            ]
        mean, variance = np.array(found).reshape(len(found), 2, n_tasks * q).transpose(1, 0, 2)
        error = np.sqrt(variance.ravel())
        names = self._people.labels, self.target_names_, self.effects_
        index = pd.MultiIndex.from_product(names, names=["person", "target", "effect"])
        reach = Reference().half_width(0.95) * error
        table = {"mean": mean.ravel(), "std_err": error}
        table |= {"ci_low": mean.ravel() - reach, "ci_high": mean.ravel() + reach}
        return pd.DataFrame(table, index=index)

    def intraclass_correlation(self, time: float | None = None) -> pd.DataFrame:
        """Shares of the variance before censoring, by target: person, visit and rest.

        ``person`` is the intraclass correlation: that of two visits of one person at the same time.
        With slopes it depends on ``time``, by default the mean of the training visits.
        """
        check_is_fitted(self)
        when = self._units.time[:1] if time is None else np.array([float(time)])
        effects = self._effects
        z = self._units.z(when, 1, len(self.effects_))
        total = effects.variances(z)[0]
        visit, rest = np.square(effects.visit).sum(axis=1), np.square(effects.sigma)
        table = {"person": 1.0 - (visit + rest) / total, "visit": visit / total}
        index = pd.Index(self.target_names_, name="target")
        return pd.DataFrame(table | {"rest": rest / total}, index=index)

    def save(self, path: str | os.PathLike[str], *, people: bool = False) -> None:
        """Save to one file, as all models do.

        Parameters
        ----------
        path : str or Path
        people : bool
            Whether names and scores of the people that the model knows are stored. Without them
            a loaded model predicts people whose visits are passed to :meth:`condition`.
        """
        models.save_model(self if people else self.without_people(), path)

    def without_people(self) -> Self:
        """The same model, which knows nobody."""
        model = copy(self)
        if hasattr(self, "_people"):
            model._forget(left_out=bool(self._people.labels))
        return model

    def to_onnx(
        self, path: Any, kind: Any = None, *, dtype: Any = "float32", q: float = 0.5
    ) -> None:
        """Refuse: predictions depend on what is known of people."""
        raise ValueError(
            "a mixed model is not written as ONNX, because its predictions depend on the visits of "
            "a person; save it, or export a TobitRegressor"
        )

    def _layer_noise(self) -> Noise:
        return Gaussian()
