"""Trajectories.

Two hundred people are seen at a memory clinic once a year, and some of them decline. After two
visits the model forecasts where three people will go who were not in its table: one with the
full score, one in the middle, one who is losing points. Scores at the ceiling count as "30 or
more".
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from deeptobit import MixedTobitRegressor

rng = np.random.default_rng(0)
person, years = np.repeat(np.arange(200), 4), np.tile([0.0, 1.0, 2.0, 3.0], 200)
level, slope = rng.normal(28.0, 3.0, 200), rng.normal(-0.8, 0.9, 200)
score = level[person] + slope[person] * years + rng.normal(0.0, 1.0, 800)
visits = pd.DataFrame({"years": years, "MMSE": score.round().clip(0, 30)})
print(f"{(visits['MMSE'] == 30).mean():.0%} of the visits have the full score")

model = MixedTobitRegressor(random_effects="slope", upper=30)
model.fit(visits[["years"]], visits["MMSE"], groups=person, time=years)
print(model.summary().loc["MMSE", ["coef", "ci_low", "ci_high"]].round(2).loc[["years"]])

seen = pd.DataFrame({"years": [0.0, 1.0]})
ahead = pd.DataFrame({"years": np.linspace(1.0, 5.0, 30)})
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for scores, colour in (([30, 30], "#0072b2"), ([27, 26], "#5f5f5f"), ([24, 20], "#d55e00")):
    known = model.condition(seen, np.array(scores, float), groups=["new"] * 2, time=seen["years"])
    who = {"groups": ["new"] * len(ahead), "time": ahead["years"]}
    low, high = known.predict_interval(ahead, 0.8, **who)
    axes.fill_between(ahead["years"], low, high, color=colour, alpha=0.25, linewidth=0)
    axes.plot(ahead["years"], known.predict(ahead, **who), color=colour)
    axes.plot(seen["years"], scores, "o", color=colour)
    at_five = known.predict(ahead.tail(1), groups=["new"], time=ahead["years"].tail(1))[0]
    print(f"seen with {scores[0]} and {scores[1]}: expected {at_five:.1f} after five years")
axes.axhline(30, color="black", linewidth=0.8, linestyle=":")
axes.set(xlabel="years", ylabel="MMSE: recorded, expected, and 80 % interval")
figure.savefig("trajectories.png", dpi=150)
