"""A client: predicts, learns and exchanges models with the hub."""
