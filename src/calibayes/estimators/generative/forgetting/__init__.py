"""Models without some of their training rows, and the check of what was removed."""
