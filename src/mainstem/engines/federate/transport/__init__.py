"""Connections, streams and stored state on a NATS server."""
