"""Tree-augmented naive Bayes and other tree-structured families over levels."""
