"""
Decide with costs
=================

A model gives probabilities; costs turn them into decisions. Here a missed tumor costs twenty times as much as a false
alarm, and a second opinion costs a quarter of a false alarm.
"""

# %%
# The probabilities of held-out rows, by five-fold cross-validation.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_predict

from calibayes import LinearDiscriminantAnalysis

data = load_breast_cancer()
X, malignant = data.data, data.target == 0
posterior = cross_val_predict(LinearDiscriminantAnalysis(), X, malignant, cv=5, method="predict_proba")[:, 1]

# %%
# Cost of each threshold on the probability of a tumor. ``decide(X, costs=...)`` takes the decision of least expected cost,
# which here is a threshold of 1 / 21.
missed, false_alarm, second_opinion = 20.0, 1.0, 0.25
thresholds = np.linspace(0.002, 0.998, 250)


def cost(threshold):
    is_alarm = posterior >= threshold
    return (missed * (malignant & ~is_alarm) + false_alarm * (~malignant & is_alarm)).mean()


costs = [cost(threshold) for threshold in thresholds]
best = false_alarm / (false_alarm + missed)
figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
axes.plot(thresholds, costs)
for threshold, label in ((best, "least expected cost"), (0.5, "most probable class")):
    axes.axvline(threshold, color="#888888", linestyle=":")
    axes.annotate(
        f"{label}\n{cost(threshold):.3f}",
        (threshold, max(costs) * 0.8),
        xytext=(4, 0),
        textcoords="offset points",
    )
axes.set(xlabel="threshold on the probability of a tumor", ylabel="mean cost of a row", ylim=(0, None))
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# A row whose expected cost is above the price of a second opinion is passed on. ``decide`` abstains by the probability of
# the most probable class instead: rows without a sure class are masked.
expected = np.minimum(missed * posterior, false_alarm * (1 - posterior))
print(f"{(expected > second_opinion).mean():.1%} of the rows cost more than a second opinion to decide")
model = LinearDiscriminantAnalysis().fit(X, malignant)
unsure = model.decide(X, least_posterior=0.9).mask
print(f"{unsure.mean():.1%} of the rows have no class with a probability of 0.9")
