"""What a report says, as plain values: gathered here, shown by `calibayes.report.sections`."""
