"""One module a section: a pure function of facts."""
