"""Federation benchmark (`make bench-federation`): its cost relative to the same exchange on the NATS server
alone."""
