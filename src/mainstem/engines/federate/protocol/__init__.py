"""Code that hub and clients share: the run document, messages, subjects, stored state. No network."""
