"""Repeated visits of people: many bounded outcomes at once, and where they go next."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from time import perf_counter
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from deeptobit import mixed
from deeptobit.arrays import FloatArray, check_count, listed
from deeptobit.estimators import diagnosis, inference, inputs, people
from deeptobit.estimators.inputs import Limits
from deeptobit.estimators.prediction import all_or_nothing
from deeptobit.estimators.source import first_rows, read_source
from deeptobit.estimators.visits import VisitRegressor, settle_effects
from deeptobit.exceptions import warn
from deeptobit.inspection import Reference
from deeptobit.layer import BasisFeatures, CensoringKinds, Design, TargetScaling, tobit
from deeptobit.likelihood import Gaussian
from deeptobit.network import LayerInputs
from deeptobit.online import OnlineSettings
from deeptobit.runtime import one_blas_thread
from deeptobit.scale import RowReader, Rows, RowSource, Shift, Standardised, SumMoments
from deeptobit.targets import CensoredTargets

RandomEffects = Literal["none", "intercept", "slope", "auto"]
Method = Literal["ep", "quadrature"]
_CHOSEN: dict[str, tuple[Any, float, str]] = {
    "person_rank": (Integral, np.inf, "a whole number, at least 0"),
    "visit_rank": (Integral, 2, "0, 1 or 2"),
    "shrinkage": (Real, np.finfo(float).max, "at least 0, and finite"),
}
_MANY_PEOPLE, _FEW_PEOPLE = 10, 3  # per feature: coefficients are then not shrunk
_MOST_NODES = 300  # of which the weights are still numbers
_FEW_FEATURES = 3  # for which the smaller number is enough


class Posed(NamedTuple):
    """A problem in standard units, and what else a fit needs to know of its rows.

    Parameters
    ----------
    targets : CensoredTargets
        Names and bounds.
    seen : PeopleSeen
    kinds : CensoringKinds
    units : MixedUnits
    problem : MixedProblem
    alpha : float, optional
        The ridge, if it need not be learned.
    constant, observed : arrays of shape (T,)
        Scores of outcomes that are at a bound throughout, and weights of observed entries.
    numbers : array of shape (n,), optional
        As in :func:`mixed.cross_fit`.
    beyond : PeopleOfSource, optional
        Everybody, where the problem has but the first people.
    """

    targets: CensoredTargets
    seen: people.PeopleSeen
    kinds: CensoringKinds
    units: mixed.MixedUnits
    problem: mixed.MixedProblem
    alpha: float | None
    constant: FloatArray
    observed: FloatArray
    numbers: Any = None
    beyond: people.PeopleOfSource | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class MixedTobitRegressor(VisitRegressor):
    r"""Mixed Tobit regression: repeated visits of people, for all outcomes at once.

    Outcome t of person i at visit v is :math:`y = \mathrm{clip}(y^*)` with

    .. math::
        y^*_{ivt} = x_{iv}^\top\beta_t + z_{iv}^\top b_{it} + \gamma_t^\top c_{iv}
        + \sigma_t\varepsilon_{ivt}, \qquad b_i \sim N(0, \Psi),\quad c_{iv} \sim N(0, I)

    where z is 1, or 1 and time. The person's own intercepts and slopes b have covariances Ψ across
    outcomes: low rank (``person_rank``) plus each outcome's own. Factors c are noise that the
    outcomes of one visit share (``visit_rank``). The evidence, b and c integrated out, is maximised
    by expectation propagation, exactly so where nothing is censored.

    Parameters
    ----------
    random_effects : {"intercept", "slope", "none", "auto"}
        Random effects of each person in every outcome; slopes are in ``time``.
    alpha : float or "auto"
        Ridge on coefficients of standardised features and outcomes, beside a likelihood divided by
        the number of rows. ``"auto"``: 0 if there are ten people per feature (3 for up to three
        features); otherwise chosen by people who are left out, around whose fixed effects σ and
        random effects are estimated too, because residuals of many features are too small.
    person_rank : int or "auto"
        Factors that link the random effects of different outcomes.
    visit_rank : {0, 1, 2} or "auto"
        Factors that outcomes of one visit share, fewer than outcomes. With two outcomes only the
        covariance of the noise is identified: the factor then takes the same share of both.
    shrinkage : float or "auto"
        Ridge on the loadings of the person's factors, in numbers of people.
    method : {"ep", "quadrature"}
        Expectation propagation, or adaptive Gauss–Hermite quadrature with ``n_nodes`` per effect,
        for models without factors: slower, and exact as the number of nodes grows.
    n_nodes : int
    lower, upper, outside, fit_intercept, standardize, prediction
        As in :class:`TobitRegressor`.
    max_iter : int
        Steps of L-BFGS at most.
    tol : float
        Largest slope of the objective, per row and in standard units, at which a fit has converged.
    random_state : int, RandomState or None
        Seed that chooses whose last visits are held out where something is ``"auto"``.
    verbose : int
        1 shows progress on stderr, on one line updated in place.

    Attributes
    ----------
    coef_, intercept_, sigma_ : arrays of shape (T, D), (T,) and (T,)
        β, the constant, and the scale of the noise that is neither the person's nor the visit's.
    covariance_ : array of shape (Tq, Tq)
        Ψ, outcome by outcome: intercept, or intercept and slope per unit of time.
    visit_loadings_ : array of shape (T, G)
        γ, up to rotation.
    random_effects_ : DataFrame
        Mean, standard error and 95 % interval of b by (person, target, effect).
    log_likelihood_ : float
        Log evidence of all outcomes, without penalties; weights count as people.
    effects_ : tuple of str
        Names of the random effects.
    person_rank_, visit_rank_, shrinkage_, alpha_ : int, int, float and float
    choices_ : DataFrame
        What ``"auto"`` tried, with the ranked probability score of held-out last visits.
    history_ : dict
        Whether and how close the fit came to the maximum; ``n_restarts``: how often L-BFGS began
        again, first after 15 steps, in better units, then where a line search ended early.
    n_iter_, lower_, upper_, feature_scale_, target_names_, n_features_in_

    Notes
    -----
    ``time`` acts through random slopes alone; put it into X too, so that people change on average.
    ``predict`` and its relatives take ``groups``, the person of every row, and ``time``, which is
    needed where there are slopes, each (N,). What is known of a person is used; anybody else, and
    every row without ``groups``, is predicted as one of whom nothing is known. A row is a visit of
    its own. Visits that are missing are taken as missing at random given those
    that are there; :meth:`sensitivity` shows what if not.

    Beyond memory the rows of a person follow each other in one file or partition. What is
    ``"auto"`` is chosen by some first 16,000 rows, and the maximum of the evidence of all is that
    of a fit in memory. Nobody is remembered: pass visits to :meth:`condition`.

    References
    ----------
    Hughes (1999), Biometrics 55, 625–629. Minka (2001), Uncertainty in AI 17, 362–369.

    Examples
    --------
    >>> import numpy as np
    >>> from deeptobit import MixedTobitRegressor
    >>> rng = np.random.default_rng(0)
    >>> person, time = np.repeat(np.arange(100), 4), np.tile([0.0, 1.0, 2.0, 3.0], 100)
    >>> latent = 27 - time + 2 * rng.normal(size=100)[person] + rng.normal(size=400)
    >>> y = np.clip(latent, 0, 30)
    >>> model = MixedTobitRegressor(upper=30).fit(time[:, None], y, groups=person)
    >>> model.coef_.round(2), model.covariance_.round(2), model.sigma_.round(2)
    (array([[-1.02]]), array([[3.74]]), array([1.01]))
    >>> model.predict([[4.0], [4.0]], groups=[0, 7]).round(2), model.predict([[4.0]]).round(2)
    (array([23.25, 24.18]), array([23.07]))
    """

    random_effects: RandomEffects = "intercept"
    alpha: float | Literal["auto"] = "auto"
    person_rank: int | Literal["auto"] = "auto"
    visit_rank: int | Literal["auto"] = "auto"
    shrinkage: float | Literal["auto"] = "auto"
    method: Method = "ep"
    n_nodes: int = 21
    max_iter: int = 500
    tol: float = 1e-7
    random_state: Any = None

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        lower: Limits = None,
        upper: Limits = None,
    ) -> Self:
        """Fit all outcomes.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D), or rows beyond memory
            One row per visit. :class:`deeptobit.scale.ParquetRows` with ``group`` and ``time``
            brings its own y; Dask collections are partitioned alike, with whole people (see Notes).
        y : array, DataFrame or CensoredTargets of shape (N,) or (N, T)
            The outcomes Y, NaN where missing.
        groups : array of shape (N,), optional
            The person of every row; without it each row is a person of its own.
        time : array of shape (N,), optional
            When the visit was, for random slopes and for the order of visits.
        sample_weight : array of shape (N,), optional
            Weights of people, the same in all rows of one; 2 counts a person twice.
        lower, upper : arrays of shape (N, T), optional
            Bounds per entry.
        """
        started = perf_counter()
        wanted = self._read_settings()
        given = {"sample_weight": sample_weight, "lower": lower, "upper": upper}
        source = read_source(X, y, **given, groups=groups, time=time)
        if source is not None:
            posed = self._pose_source(source, wanted)
        else:
            inputs.check_labels(X, groups, "groups")
            inputs.check_labels(X, time, "time")
            matrix, targets, weight = self._read_rows(X, y, **given)
            known = inputs.dense(matrix), targets.low, targets.high, weight, groups, time
            persons = people.PersonRows.read(people.VisitRows(*known))
            posed = self._pose(persons, targets, wanted)
        with one_blas_thread():  # products are small: threads would only wait for each other
            solution, structure, tried = self._solve(posed, wanted)
        self._store(solution, structure, posed)
        self._choices = {name: [row[name] for row in tried] for name in (tried or [{}])[0]}
        self._forget(left_out=source is not None)
        if source is None:
            self._remember(persons)
        self._trained = mixed.FittedMixed(solution, posed.units)
        self._show_progress(f"{self.n_iter_} steps in {perf_counter() - started:.1f} s", last=True)
        diagnosis.warn_of_censoring(posed.kinds, posed.targets)
        effects, floor = solution.point.effects, (1.0 + 1e-4) * mixed.SIGMA_FLOOR
        # A factor of visits may be all the noise of an outcome, which changes then.
        at_floor = (effects.sigma <= floor) & (np.abs(effects.visit) <= floor).all(axis=1)
        still = [self.target_names_[task] for task in self._active[at_floor]]
        if still and posed.seen.twice:
            change = "changes" if len(still) == 1 else "change"
            warn(
                f"{listed(still)} hardly {change} between visits of a person: the noise is at its "
                f"floor of {mixed.SIGMA_FLOOR:g} standard deviations"
            )
        if not solution.converged:
            warn(
                f"the fit has not converged in {solution.n_iter} steps (largest slope "
                f"{solution.gradient_norm:.1e}); raise max_iter, or simplify the random effects",
                ConvergenceWarning,
            )
        return self

    def _pose(
        self, persons: people.PersonRows, targets: CensoredTargets, wanted: dict[str, Any]
    ) -> Posed:
        """The problem in standard units, people one after the other."""
        matrix, weight, center = persons.rows.X, persons.rows.weight, self.fit_intercept
        origin = 0.0 if persons.time is None else float(persons.time[0])
        seen = people.PeopleSeen.of(origin, persons)
        alpha = self._read_alpha(seen.n_people)
        needed = 0 if alpha is None or alpha > 0.0 else self.n_features_in_
        diagnosis.check_determined(targets, weight, needed)
        settle_effects(wanted, len(targets.names), seen)
        self.feature_scale_ = inputs.feature_scale(matrix, weight)
        kinds = CensoringKinds.of(targets, weight)
        share = weight / weight.sum()
        # The basis suits a ridge of this size; with 0 the null space is left out.
        ridge = min(self.n_features_in_ / seen.n_people, 1.0) if alpha is None else alpha
        standardize = self.standardize or alpha == 0.0
        design = Design.build(matrix, share, center=center, standardize=standardize)
        features = BasisFeatures.whitened(design, float(ridge))
        diagnosis.warn_of_collinearity(features, inputs.feature_names(self), float(ridge))
        scaling = TargetScaling.build(targets, share, center=center)
        units, problem = self._problem(seen, kinds, scaling, features, persons)
        bounds, n_entries = tobit.outermost_bounds(targets), weight @ ~targets.missing
        constant = tobit.beyond_the_bound(*bounds, n_entries, units.scale, Gaussian())
        numbers = persons.numbers(targets.values)
        observed = weight @ targets.observed
        return Posed(targets, seen, kinds, units, problem, alpha, constant, observed, numbers)

    def _pose_source(self, source: RowSource, wanted: dict[str, Any]) -> Posed:
        """The same for rows beyond memory; in the problem are the first of them."""
        _, targets, _ = self._read_rows(*first_rows(source), None, None, None)
        self.__dict__.pop("_feature_limits", None)  # those of the first rows
        bounds = targets.lower, targets.upper
        reader = RowReader(source.features, targets.names, *bounds, self.outside)
        seen, first = people.see_people(source, reader), source.first()
        shift = Shift.near(first.X, first.Y)
        moments = Rows(source, reader).total(SumMoments(LayerInputs(*bounds), shift))
        alpha = self._read_alpha(seen.n_people)
        if alpha is None:
            raise ValueError(
                f"{seen.n_people:g} people are few for {self.n_features_in_} features, and the "
                "ridge is chosen for people in memory only; set alpha"
            )
        needed = 0 if alpha > 0.0 else self.n_features_in_
        diagnosis.check_counts(round(moments.n_rows), moments.known, targets.names, needed)
        settle_effects(wanted, len(targets.names), seen)
        standardize = self.standardize or alpha == 0.0
        settings = OnlineSettings(1, fit_intercept=self.fit_intercept, standardize=standardize)
        data = Standardised.of(moments, shift, settings, 0)
        diagnosis.warn_of_collinearity(data.features, inputs.feature_names(self), alpha)
        self.feature_scale_, kinds = data.summary().scale, data.kinds
        head = people.PersonRows.read(people.first_visits(source, reader))
        units, problem = self._problem(seen, kinds, data.scaling, data.features, head)
        beyond = people.PeopleOfSource(source, reader, units, seen.n_people, seen.n_rows)
        constant = units.location + units.scale * data.beyond_the_bound(Gaussian())
        found = targets, seen, kinds, units, problem, alpha, constant, moments.inside
        return Posed(*found, beyond=beyond)

    def _problem(
        self,
        seen: people.PeopleSeen,
        kinds: CensoringKinds,
        scaling: TargetScaling,
        features: BasisFeatures,
        persons: people.PersonRows,
    ) -> tuple[mixed.MixedUnits, mixed.MixedProblem]:
        """Units, and the problem of some people in them."""
        time, active = seen.time_units(), np.flatnonzero(~kinds.one_sided)
        units = mixed.MixedUnits(scaling.location, scaling.scale, time, features, active)
        visits, standard = persons.in_units(units, 2 if seen.moving else 1)
        problem = mixed.MixedProblem(
            visits,
            standard,
            ridge=np.zeros(standard.shape[1]),
            fit_intercept=self.fit_intercept,
            free_sigma=~kinds.two_sided[active],
            n_nodes=self.n_nodes if self.method == "quadrature" else 0,
        )
        return units, problem

    def _read_alpha(self, n_people: float) -> float | None:
        """The ridge; None if it is to be learned."""
        if isinstance(self.alpha, str):
            wanted = _FEW_PEOPLE if self.n_features_in_ <= _FEW_FEATURES else _MANY_PEOPLE
            return 0.0 if n_people >= wanted * self.n_features_in_ else None
        return float(self.alpha)

    def _read_settings(self) -> dict[str, Any]:
        """The fields of :class:`mixed.Structure` as they are asked for; None is to be chosen."""
        params = self.get_params(deep=False)
        automatic = {name for name in params if str(params[name]) == "auto"}
        inputs.check_settings(params | dict.fromkeys(automatic & {"alpha"}, 0.0))
        inputs.check_choice("random_effects", self.random_effects, get_args(RandomEffects))
        inputs.check_choice("method", self.method, get_args(Method))
        check_count("n_nodes", self.n_nodes)
        if self.n_nodes > _MOST_NODES:
            raise ValueError(f"n_nodes must be at most {_MOST_NODES}; got {self.n_nodes}")
        for name in {*_CHOSEN} - automatic:
            (kind, most, expected), value = _CHOSEN[name], params[name]
            if not (isinstance(value, kind) and 0 <= value <= most):
                raise ValueError(f"{name} must be 'auto' or {expected}; got {value!r}")
        n_effects = {"none": 0, "intercept": 1, "slope": 2, "auto": None}[self.random_effects]
        wanted = {name: None if name in automatic else params[name] for name in _CHOSEN}
        if self.method == "quadrature":
            if wanted["person_rank"] or wanted["visit_rank"]:
                raise ValueError(
                    "method='quadrature' is for models without factors: set person_rank and "
                    "visit_rank to 0, or method='ep'"
                )
            wanted |= {"person_rank": 0, "visit_rank": 0}
        return {"effects": n_effects, **wanted}

    def _solve(
        self, posed: Posed, wanted: dict[str, Any]
    ) -> tuple[mixed.Solution, mixed.Structure, list[dict[str, Any]]]:
        """Choose what is to be chosen, beyond memory by the first people; then maximise."""
        problem, alpha = posed.problem, posed.alpha
        if not problem.shape[1]:  # every outcome is at a bound throughout
            self.alpha_, structure = 0.0, mixed.Structure(0, 0, 0, 0.0)
            problem = problem.with_effects(0)
            nothing = problem.unpack(np.zeros(0))
            return mixed.Solution(problem, nothing, 0.0, 0.0, 0, 0, True), structure, []
        if wanted["effects"] is not None:
            problem = problem.with_effects(wanted["effects"])
        norms, watch, crossed = posed.units.features.squared_norms, self._show_progress, None
        if alpha is None:
            few = problem.with_effects(min(problem.shape[2], 1))
            crossed = mixed.cross_fit(few, norms, posed.numbers, max_iter=100, watch=watch)
            alpha = crossed.alpha
        self.alpha_, problem = alpha, replace(problem, ridge=alpha * norms)
        # Random effects are found around the fixed effects of people left out, if there are any.
        around = problem if crossed is None else problem.around(crossed.mean)
        settings: dict[str, Any] = {"max_iter": self.max_iter, "watch": watch}
        tried: list[dict[str, Any]] = []
        if None in wanted.values():
            seed = check_random_state(0 if self.random_state is None else self.random_state)
            seed = int(seed.randint(np.iinfo(np.int32).max))
            structure, tried = mixed.choose_structure(around, wanted, seed=seed, **settings)
        else:
            structure = mixed.Structure(**wanted)
        settings["tol"] = self.tol
        around = replace(around.with_effects(structure.effects), beyond=posed.beyond)
        solution = mixed.fit_structure(around, structure, **settings)
        if crossed is not None:  # then the coefficients given them
            joint = problem.with_effects(structure.effects).with_factors(*structure[1:])
            none = np.zeros((problem.shape[1], len(norms)))
            at = mixed.Point(none, solution.point.intercept, solution.point.effects)
            solution = mixed.solve(joint, at, **settings, hold_effects=True)
        return solution, structure, tried

    def _store(self, solution: mixed.Solution, structure: mixed.Structure, posed: Posed) -> None:
        """Everything fitted, in the user's units; outcomes at a bound throughout stay there."""
        units, targets = posed.units, posed.targets
        active, n_tasks = units.active, targets.shape[1]
        found, (q, R, G, shrinkage) = solution.point.effects, structure
        self._store_targets(targets)
        coef, sigma = np.zeros((n_tasks, self.n_features_in_)), units.scale.copy()
        intercept = posed.constant.copy()
        coef[active], intercept[active], sigma[active] = units.fixed(solution.point)
        self.coef_, self.intercept_, self.sigma_ = coef, intercept, sigma
        self._effects = mixed.Effects(*(np.zeros((n_tasks, *part.shape[1:])) for part in found))
        for everywhere, part in zip(self._effects, found, strict=True):
            everywhere[active] = part
        self._effects.sigma[:] = sigma / units.scale
        self._units = mixed.EffectUnits(units.location, units.scale, units.time)
        self.covariance_ = units.covariance(self._effects)
        self.visit_loadings_ = self._effects.visit * units.scale[:, None]
        self.effects_, self._active = ("intercept", "slope")[:q], active
        self.person_rank_, self.visit_rank_, self.shrinkage_ = R, G, float(shrinkage)
        lost = posed.observed[active] @ np.log(units.scale[active])  # by densities in these units
        self.log_likelihood_ = solution.log_likelihood - float(lost)
        self.n_iter_ = max(solution.n_iter, 1)
        self.history_ = {
            "solver": self.method,
            "converged": solution.converged,
            "gradient_norm": solution.gradient_norm,
            "n_restarts": solution.n_restarts,
        }

    @property
    def choices_(self) -> pd.DataFrame:
        """What ``"auto"`` tried, with the ranked probability score of held-out last visits."""
        return pd.DataFrame(self._choices)

    def summary(
        self,
        *,
        cov_type: Literal["observed", "robust"] = "observed",
        confidence: float = 0.95,
        small_sample: bool = True,
    ) -> pd.DataFrame:
        """Estimates with standard errors, z, p and confidence intervals.

        Parameters
        ----------
        cov_type : {"observed", "robust"}
            The inverse observed information of the evidence, or the sandwich over people.
        confidence : float
        small_sample : bool
            Take p and intervals from t with n − p degrees of freedom and variances times n/(n − p),
            n being the number of people and p that of coefficients; ``False``: from the normal
            distribution. Standard errors are large-sample in either case.

        Returns
        -------
        DataFrame
            One row per (target, term): features, intercept, log σ, then variances and covariances
            of the random effects of the target, and, under the names of both, correlations of
            the effects of two targets. What the data do not determine has NaN as standard error.

        Examples
        --------
        >>> import numpy as np
        >>> from deeptobit import MixedTobitRegressor
        >>> rng = np.random.default_rng(0)
        >>> person, time = np.repeat(np.arange(80), 3), np.tile([0.0, 1.0, 2.0], 80)
        >>> y = 1 + 0.5 * time + rng.normal(size=80)[person] + rng.normal(size=240)
        >>> model = MixedTobitRegressor().fit(time[:, None], np.maximum(y, 0), groups=person)
        >>> model.summary()[["coef", "std_err"]].round(2)
                               coef  std_err
        target term
        y      x0              0.58     0.09
               (intercept)     0.92     0.16
               log(sigma)      0.04     0.06
               var(intercept)  0.93     0.22
        """
        inputs.check_choice("cov_type", cov_type, ("observed", "robust"))
        trained = self._training()
        estimate = trained.units.report(trained.solution.point)
        variance = trained.reported_covariance(cov_type).diagonal()
        targets = [self.target_names_[task] for task in self._active]
        constants = inference.INTERCEPT, inference.LOG_SIGMA
        names = mixed.reported_terms(targets, inputs.feature_names(self), constants, self.effects_)
        index = pd.MultiIndex.from_tuples(names, names=["target", "term"])
        reference = self._reference(small_sample)
        table = inference.estimate_table(index, estimate, variance, confidence, reference)
        order = {name: place for place, name in enumerate(targets)}
        first = sorted(names, key=lambda name: order.get(name[0], len(order)))
        kept = [name for name in first if self.fit_intercept or name[1] != inference.INTERCEPT]
        return table.loc[kept]

    def wald_test(
        self,
        features: Sequence[str] | str | None = None,
        *,
        cov_type: Literal["observed", "robust"] = "observed",
        small_sample: bool = True,
    ) -> pd.DataFrame:
        """Test per target that the coefficients of ``features`` (all, by default) are zero.

        Returns ``statistic``, ``df`` and ``p_value`` by F, or by χ² if not ``small_sample``.
        """
        covariance = self._training().reported_covariance(cov_type)
        chosen, rows = np.array(inference.read_chosen(self, features)), []
        for number, task in enumerate(self._active):
            places = number * self.n_features_in_ + chosen
            among, reference = covariance[np.ix_(places, places)], self._reference(small_sample)
            rows.append(inference.wald_row(self.coef_[task, chosen], among, reference))
        index = pd.Index([self.target_names_[task] for task in self._active], name="target")
        return pd.DataFrame(rows, index=index)

    def likelihood_ratio_test(self, restricted: Any) -> pd.Series:
        r"""Compare with a nested model that was fitted to the same visits.

        Variances that are 0 in the nested model lie at the end of their range, and the reference
        is a mixture of :math:`\chi^2` distributions: for a random intercept
        :math:`\tfrac12\chi^2_0 + \tfrac12\chi^2_1`. Numbers of factors count by their parameters,
        which errs on the safe side.

        Parameters
        ----------
        restricted : fitted MixedTobitRegressor
            With fewer features, or with simpler ``random_effects`` (``"none"``), ``person_rank`` or
            ``visit_rank``.

        Returns
        -------
        Series
            ``statistic``, ``df``, ``p_value`` and ``restricted_log_likelihood``, all targets.
        """
        if not isinstance(restricted, MixedTobitRegressor):
            raise ValueError(f"restricted must be a fitted MixedTobitRegressor; got {restricted!r}")
        ours, theirs = self._training(), restricted._training()
        known, other = (each.solution.problem.visits for each in (ours, theirs))
        parts = "starts", "weight", "low", "high"
        pairs = ((getattr(known, name), getattr(other, name)) for name in parts)
        if not all(a.shape == b.shape and np.allclose(a, b, equal_nan=True) for a, b in pairs):
            raise ValueError("both models must be fitted to the same visits and weights")
        if self.alpha_ or restricted.alpha_ or self.shrinkage_ or restricted.shrinkage_:
            raise ValueError(
                "a likelihood-ratio test needs unpenalised models (alpha=0, shrinkage=0)"
            )
        extra = {*inputs.feature_names(restricted)} - {*inputs.feature_names(self)}
        simpler = ours.n_parameters >= theirs.n_parameters
        if extra or not simpler or len(self.effects_) < len(restricted.effects_):
            raise ValueError("the models are not nested: the restricted one has extra parameters")
        found = ours.likelihood_ratio(theirs)
        return pd.Series(found | {"restricted_log_likelihood": restricted.log_likelihood_})

    def aic(self) -> float:
        """Akaike's criterion of all outcomes, 2k − 2 log L; meaningful without penalties."""
        return float(2.0 * self._training().n_parameters - 2.0 * self.log_likelihood_)

    def bic(self) -> float:
        """Schwarz's criterion, k log n − 2 log L, with n people."""
        trained = self._training()
        n_people = trained.solution.problem.n_people
        return float(trained.n_parameters * np.log(n_people) - 2.0 * self.log_likelihood_)

    def _reference(self, small_sample: bool) -> Reference:
        """The t distribution with as many degrees of freedom as people are left."""
        if not small_sample:
            return Reference()
        problem = self._training().solution.problem
        n_people = problem.n_people
        left = max(n_people - len(problem.ridge) - problem.fit_intercept, 1.0)
        return Reference(n_people / left, left)
