"""
Why this class
==============

The contribution of each column to the log odds of one row, and its average over all rows.
"""

# %%
# The columns of the Palmer penguins are numbers and texts, with missing cells.
import matplotlib.pyplot as plt

from calibayes import NaiveBayes
from calibayes.datasets import load_penguins
from calibayes.plots import plot_overall, plot_reasons

X, y = load_penguins(return_X_y=True)
model = NaiveBayes().fit(X, y)
explanation = model.explain(X)
print(explanation.frame().iloc[0])

# %%
# In naive Bayes the log odds are a sum over the columns, so that the contributions add up to them.
figure, panels = plt.subplots(2, 1, figsize=(8, 6), layout="constrained")
plot_reasons(explanation, row=0, ax=panels[0])
plot_overall(explanation, ax=panels[1])
plt.show()
