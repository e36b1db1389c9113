"""One module per paper: its data sets, models, tables and figures."""
