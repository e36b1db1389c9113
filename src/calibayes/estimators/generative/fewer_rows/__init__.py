"""Models of all rows but some: single rows, groups or folds that are left out of the sums."""
