"""Differentially private training of closed forms."""
