"""Plain NumPy loops written straight from the papers' equations: the oracle of the tests.

Nothing here imports the package. Steps are t = 1..T, clients k = 0..K-1, models 1-D float64 arrays.
`gradient(x, k, t)` is the gradient of client k's own loss of step t at the model x; it is called
exactly once for every t (ascending) and, within t, every k (ascending).

Every run returns a dict:
    models [T, K, D]   models[t - 1, k]: what client k decides with at step t, before it learns at t
    server [T + 1, D]  server[t]: the server's model after step t; server[0] is the start
"""
