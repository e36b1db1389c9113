"""Methods of classifiers that other packages of calibayes implement, which are imported when a method is called.

Exports and reports are built on estimators, so that estimators cannot import them as they are imported themselves.
"""

from __future__ import annotations

from typing import Any


def report(self: Any, X: Any, y: Any, **options: Any) -> Any:
    """A page about this model and labeled rows that it was not trained on; see `calibayes.report.report_on_model`.

    Parameters
    ----------
    X, y
        Rows that the model was not trained on, and their labels.
    **options
        Options of `calibayes.report.report_on_model`, such as ``costs``.

    Returns
    -------
    calibayes.report.Report
        It is shown in a notebook; ``report.save("report.html")`` writes one file.
    """
    from calibayes.report import report_on_model

    return report_on_model(self, X, y, **options)
