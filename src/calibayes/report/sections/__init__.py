"""The sections of the page: one module for each, with a pure function of the facts."""
