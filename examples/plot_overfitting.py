"""
When calibration helps, and when it over-fits
=============================================

Log loss on training rows and on test rows after each calibration step. With many rows for each parameter the test loss
falls with the training loss. With few, it rises again after some steps.
"""

# %%
# Two tables of scikit-learn, 250 training rows each: tumors (30 columns, two classes) and handwritten digits (64 columns,
# ten classes).
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from calibayes import GaussianNB, LinearDiscriminantAnalysis, TrainingOptions
from calibayes.learn import LastState

STEPS = [0, 1, 2, 4, 8, 16, 32, 64]


def fit(model, steps, X, y):
    """A model after so many calibration steps; after none it is that of maximum likelihood."""
    return (model(rule="ml") if steps == 0 else model(stop=LastState(), max_iter=steps)).fit(X, y)


# %%
# Gaussian naive Bayes on the tumors has 60 parameters a class, and columns that depend on each other. Linear discriminant
# analysis on the digits has 1,176 parameters of the covariance that all classes share, and 48 means a class.
digits, number = load_digits(return_X_y=True)
digits = digits[:, digits.std(axis=0) > 1.0]  # pixels that are hardly ever gray say nothing
cases = {
    "tumors, Gaussian naive Bayes": (GaussianNB, load_breast_cancer(return_X_y=True)),
    "digits, linear discriminant analysis": (LinearDiscriminantAnalysis, (digits, number)),
}
figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for axes, (title, (model, (X, y))) in zip(panels, cases.items(), strict=True):
    train, test, labels, truth = train_test_split(X, y, train_size=250, random_state=0, stratify=y)
    models = [fit(model, steps, train, labels) for steps in STEPS]
    axes.plot(
        STEPS, [log_loss(labels, each.predict_proba(train)) for each in models], "o-", label="training rows"
    )
    losses = [log_loss(truth, each.predict_proba(test)) for each in models]
    axes.plot(STEPS, losses, "o-", label="test rows")
    axes.set_title(title, loc="left", fontsize="medium")
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xticks(STEPS, STEPS)
    axes.set_xlabel("calibration steps")
    axes.spines[["top", "right"]].set_visible(False)
    errors = [1 - each.score(test, truth) for each in (models[0], models[-1])]
    print(f"{title}: test loss least after {STEPS[losses.index(min(losses))]} steps;", end=" ")
    print(f"test error {errors[0]:.3f} before, {errors[1]:.3f} after {STEPS[-1]} steps")
panels[0].set_ylabel("log loss")
panels[0].legend(frameon=False)
plt.show()

# %%
# Where rows are few, hold some out: training stops where their loss is lowest. ``BayesClassifier`` chooses the number of
# steps of each of its members by cross-validation.
stopped = LinearDiscriminantAnalysis(training=TrainingOptions(validation_fraction=0.25)).fit(train, labels)
print(
    f"with validation rows: {stopped.n_iter_} steps, test loss {log_loss(truth, stopped.predict_proba(test)):.3f}"
)
