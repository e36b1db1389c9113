"""The design on one page (`protocols`) and the three things everything is made of: blocks, trees, namespaces."""
