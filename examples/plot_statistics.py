"""
Statistics before and after calibration
=======================================

A generative model is a function of sums over rows. Calibration changes the sums, and with them the parameters.
"""

# %%
# Two classes whose columns are copies of each other, with noise. Naive Bayes counts the same evidence four times, so that
# its probabilities are too extreme.
import matplotlib.pyplot as plt
import numpy as np

from calibayes import GaussianNB

rng = np.random.default_rng(0)
y = np.arange(600) % 2
signal = rng.normal(y, 1.0)
X = signal[:, None] + rng.normal(0.0, 0.15, (600, 4))

likelihood, calibrated = (GaussianNB(rule=rule).fit(X, y) for rule in ("ml", "rc"))
for name, model in (("maximum likelihood", likelihood), ("calibrated", calibrated)):
    print(name, {key: np.round(value[1], 2).tolist() for key, value in model.statistics_["columns"].items()})

# %%
# The density of the first column in each class, and the probability of the second class along the diagonal of the four
# columns. The exact probability is known here: the four columns say what one of them says.
grid = np.linspace(-3, 4, 200)
diagonal = np.repeat(grid[:, None], 4, axis=1)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for model, style, name in ((likelihood, "-", "maximum likelihood"), (calibrated, "--", "calibrated")):
    for label in range(2):
        mean, variance = model.theta_[label, 0], model.var_[label, 0]
        density = np.exp(-((grid - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
        left.plot(grid, density, style, color=f"C{label}", label=f"class {label}, {name}")
    right.plot(grid, model.predict_proba(diagonal)[:, 1], style, color="C2", label=name)
right.plot(grid, 1 / (1 + np.exp(-(grid - 0.5))), color="#888888", label="one column alone, exact")
left.set(xlabel="first column", ylabel="density", title="densities")
right.set(xlabel="value of all four columns", ylabel="probability of class 1", title="posterior")
for axes in (left, right):
    axes.legend(frameon=False, fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
plt.show()
