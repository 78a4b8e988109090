"""Random data for the checks of the oracle."""


def drawn(problem, rng, shape, features=4):
    """Draws data of a problem and the size of its parameters."""
    x = rng.normal(size=(*shape, features))
    rows = features + bool(problem.get("intercept"))
    if problem["name"] == "quadratic":
        return {"y": rng.normal(size=(*shape, features))}, features
    if problem["name"] == "linear":
        return {"x": x, "y": rng.normal(size=shape)}, rows
    classes = problem.get("classes", 2)
    size = rows * (classes if problem["name"] == "softmax" else 1)
    return {"x": x, "y": rng.integers(0, classes, size=shape)}, size


def personal(rng, steps=9, clients=3, **algorithm):
    """Draws an instance with a shared part of two and an own part of three features."""
    return {
        "steps": steps,
        "clients": clients,
        "problem": {"name": "personal"},
        "data": {
            "xg": rng.normal(size=(steps, clients, 2)),
            "xl": rng.normal(size=(steps, clients, 3)),
            "y": rng.normal(size=(steps, clients)),
        },
        "start": (rng.normal(size=2), rng.normal(size=3)),
        "algorithm": algorithm,
    }
