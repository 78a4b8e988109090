"""Published results, one file each; every file here is listed by `mainstem reproduce --list`."""
