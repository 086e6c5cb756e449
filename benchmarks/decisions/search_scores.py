"""How `SubspaceNetworkCV` does on splits of the race's data, seeds apart from those of the race."""

from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from deeptobit import SubspaceNetworkCV
from deeptobit.experiments import EvaluationData, Protocol, draw_splits
from deeptobit.metrics import censored_log_score, centred_anmse, crps

_SEED = 100


class SearchScores(NamedTuple):
    """Means over outcomes; CRPS and log score in standard deviations of an outcome."""

    centred_anmse: float
    crps: float
    log_score: float


def scores_on_splits(
    data: EvaluationData, n_splits: int, **settings: Any
) -> tuple[str, SearchScores]:
    """Names of the noise that was chosen, and the means over splits."""
    protocol = Protocol(train_shares=(0.6,), repeats=n_splits, seed=_SEED)
    chosen, found = set(), []
    with threadpool_limits(1):
        for split in draw_splits(len(data.targets), data.groups, protocol):
            X, train, test = data.features(split.train), *(data.targets[rows] for rows in split[2:])
            model = SubspaceNetworkCV(random_state=0, **settings).fit(X[split.train], train)
            latent = model.predict(X[split.test], kind="latent")
            scale = np.nanstd(train.values, axis=0)
            inside = ~(test.at_lower | test.at_upper | test.missing)
            density = (inside.sum(axis=0) / (~test.missing).sum(axis=0)) * np.log(scale)
            by_task: dict[str, Any] = {"noise": model.noise_, "multioutput": "raw_values"}
            spread = np.asarray(crps(test, latent, model.sigma_, **by_task)) / scale
            log_score = np.asarray(censored_log_score(test, latent, model.sigma_, **by_task))
            error = float(centred_anmse(test, model.predict(X[split.test])))
            found.append((error, float(spread.mean()), float((log_score - density).mean())))
            chosen.add(model.noise_.name)
    return ", ".join(sorted(chosen)), SearchScores(*np.mean(found, axis=0).tolist())
