"""Reports: one self-contained HTML page about a table and the models that fit it, or about a fitted model."""

from calibayes.report.make import report_on_model, report_on_table
from calibayes.report.report import Report

__all__ = ["Report", "report_on_model", "report_on_table"]
