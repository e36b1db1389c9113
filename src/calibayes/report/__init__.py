"""Reports: a self-contained HTML page that compares models on a table, or describes a fitted model.

Examples
--------
>>> from calibayes import NaiveBayes
>>> from calibayes.datasets import load_penguins
>>> X, y = load_penguins(return_X_y=True)
>>> model = NaiveBayes(rule="ml").fit(X[::2], y[::2])
>>> page = report_on_model(model, X[1::2], y[1::2])  # rows that the model was not trained on
>>> isinstance(page, Report), page.html.startswith("<!")
(True, True)
"""

from calibayes.report.html_report import Report, report_on_model, report_on_table

__all__ = ["Report", "report_on_model", "report_on_table"]
