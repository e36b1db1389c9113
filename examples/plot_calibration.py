"""
What calibration changes
========================

Naive Bayes takes columns as independent given the class. Where they are not, maximum likelihood places its boundary wrongly.
Risk-based calibration (RC) keeps the form of the model and moves its parameters until rows are classified well.
"""

# %%
# Two Gaussian classes whose columns are correlated (0.9), and whose means differ in the first column only.
import matplotlib.pyplot as plt
import numpy as np

from calibayes import GenerativeLogisticRegression
from calibayes.plots import plot_boundaries

rng = np.random.default_rng(0)
y = np.arange(400) % 2
X = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]], 400) + np.outer(y, [1.0, 0.0])

# %%
# ``GenerativeLogisticRegression`` is Gaussian naive Bayes with variances that the classes share, so that its boundary is
# a straight line. By maximum likelihood it is nearly upright: the second column has about the same mean in both classes.
models = {rule: GenerativeLogisticRegression(rule=rule).fit(X, y) for rule in ("ml", "rc")}
for rule, model in models.items():
    print(f"{rule}: coefficients {model.coef_.round(2).tolist()}, error {1 - model.score(X, y):.3f}")

# %%
# Calibration has moved the means of the second column apart, although those of the rows are about equal: the model fits the columns less well and tells the classes apart better.
figure, panels = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharex=True, sharey=True)
titles = {"ml": "maximum likelihood", "rc": "risk-based calibration"}
for axes, (rule, model) in zip(panels, models.items(), strict=True):
    plot_boundaries(X, y, {titles[rule]: model.decision_function}, ax=axes)
    axes.set_title(f"{titles[rule]}: error {1 - model.score(X, y):.1%}", loc="left", fontsize="medium")
plt.show()
