"""The kinds of tables and figures in the papers: which tasks they need, and the report made of the results."""
