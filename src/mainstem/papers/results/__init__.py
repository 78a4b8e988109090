"""One file a result; a file that is here is in `mainstem reproduce --list`."""
