"""The promise of a private training, its account, and the noise it is made of."""
