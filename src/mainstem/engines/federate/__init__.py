"""The engine for real processes on a real network: one hub, many clients, NATS between them."""
