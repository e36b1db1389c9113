"""One module for each paper: its tables and figures."""
