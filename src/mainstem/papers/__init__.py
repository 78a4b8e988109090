"""Published results: each is a spec with claims that are checked automatically."""
