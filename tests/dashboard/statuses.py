"""A status of a federated run, as a hub writes it."""

CLIENT = {"state": "present", "refused": {"stale": 2}} | dict.fromkeys(
    ("samples", "uploads", "loss", "recent_loss", "staleness", "norm", "bytes_up", "strikes"), 1
)
MERGE = {"version": 2, "step": 2, "time": 1.0, "waited": 0.1, "deadline": False, "uploads": 1}
STATUS = {
    "run": "fine",
    "state": "running",
    "time": 1e9,
    "age": 0.5,
    "pace": "free",
    "epoch": 1,
    "version": 2,
    "step": 2,
    "revision": 0,
    "bytes_down": 1,
    "waiting": {"clients": 0, "quorum": 1},
    "clients": {"a": CLIENT},
    "rounds_per_second": 1.0,
    "candidate": None,
    "alarms": [],
    "checkpoints": [1],
    "merges": [MERGE | {"stopped": []}],
}
