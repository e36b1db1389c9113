"""
Five models of the same two columns
===================================

Which boundaries can a model draw? Two interleaved half moons, and the probabilities of five models.
"""

# %%
# All are calibrated, and all but the last have few parameters.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay

import calibayes as cb

X, y = make_moons(400, noise=0.2, random_state=0)
test, truth = make_moons(4000, noise=0.2, random_state=1)
models = {
    "linear discriminant": cb.LinearDiscriminantAnalysis(),
    "quadratic discriminant": cb.QuadraticDiscriminantAnalysis(),
    "kernel naive Bayes": cb.NaiveBayes(),
    "mixture, 4 components": cb.MixtureDiscriminantAnalysis(n_components=4, random_state=0),
    "joint kernel": cb.JointKernelClassifier(),
}
figure, panels = plt.subplots(1, 5, figsize=(13, 3.0), layout="constrained", sharey=True)
for axes, (name, model) in zip(panels, models.items(), strict=True):
    model.fit(X, y)
    DecisionBoundaryDisplay.from_estimator(
        model,
        X,
        response_method="predict_proba",
        plot_method="pcolormesh",
        cmap="RdBu_r",
        alpha=0.7,
        ax=axes,
        vmin=0,
        vmax=1,
    )
    axes.scatter(*X.T, c=np.where(y == 1, "#a8201a", "#143d59"), s=4)
    axes.set_title(f"{name}\nerror {1 - model.score(test, truth):.1%}", fontsize="medium")
    axes.set(xticks=[], yticks=[], xlabel="", ylabel="")
plt.show()
