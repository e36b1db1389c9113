"""The content of a report as plain values, which `calibayes.report.sections` formats as HTML."""
