"""The live page: what federated runs and simulations do at present, and the orders of an operator."""
