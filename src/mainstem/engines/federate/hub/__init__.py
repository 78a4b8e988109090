"""The hub: collects uploads, merges them, stores the state and broadcasts the model."""
