"""Random tables for property tests with hypothesis, which is imported when `tables` is called."""
