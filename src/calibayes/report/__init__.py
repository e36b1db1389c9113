"""Reports: one self-contained HTML page about a table and the models that fit it, or about a fitted model.

Examples
--------
>>> from calibayes import NaiveBayes
>>> from calibayes.datasets import load_penguins
>>> X, y = load_penguins(return_X_y=True)
>>> page = report_on_model(NaiveBayes(rule="ml").fit(X, y), X, y)
>>> isinstance(page, Report), page.html.startswith("<!")
(True, True)
"""

from calibayes.report.make import report_on_model, report_on_table
from calibayes.report.report import Report

__all__ = ["Report", "report_on_model", "report_on_table"]
