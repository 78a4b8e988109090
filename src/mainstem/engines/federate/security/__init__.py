"""TLS, credentials and permissions of a federation's NATS server."""
