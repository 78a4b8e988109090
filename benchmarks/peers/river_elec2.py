"""Logistic regression by online gradient descent in River, sample after sample. Needs `pip install river`."""


def examples(features, labels):
    """Samples as River takes them: dictionaries, made before the clock starts."""
    return [
        (dict(enumerate(row)), bool(label))
        for row, label in zip(features.tolist(), labels.tolist(), strict=True)
    ]


def models(count, step):
    """So many new models."""
    from river import linear_model, optim

    return [
        linear_model.LogisticRegression(optim.SGD(step), intercept_lr=step, l2=0.0)
        for _ in range(count)
    ]


def learn(model, stream):
    """`learn_one` of each sample alone."""
    learn_one = model.learn_one
    for x, y in stream:
        learn_one(x, y)


def predict_and_learn(model, stream):
    """The number of correct predictions, each made before the sample is learnt."""
    correct = 0
    for x, y in stream:
        correct += model.predict_one(x) == y
        model.learn_one(x, y)
    return correct
