"""
Inside the default classifier
=============================

``BayesClassifier`` is a weighted average of the posteriors of several models. ``summary()`` has their weights and their
scores on rows they were not trained on, ``plot_members`` their share in each decision.
"""

# %%
# The wines of scikit-learn: 178 rows with 13 columns, three classes.
import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from calibayes import BayesClassifier
from calibayes.plots import plot_members

data = load_wine(as_frame=True)
model = BayesClassifier(random_state=0).fit(data.data, data.target)
print(model.summary())

# %%
# The share of a member is how much of the log odds of the decision comes from it.
plot_members(model, data.data)
plt.show()
