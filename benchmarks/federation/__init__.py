"""`make bench-federation`: what federating costs, beside the same exchange on the broker alone."""
