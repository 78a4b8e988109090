"""Every published result as a spec with claims that a machine checks."""
