"""Faults that the gate must catch: puts each into a copy of the package and runs the tests named with it.

    make test-faults

A fault that no test catches is printed last, and the exit code is 1.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
HUB, CLIENT = "engines/federate/hub", "engines/federate/client"


class Fault(NamedTuple):
    """A replacement in one file of the package, and the tests of which one must fail."""

    title: str
    file: str
    old: str
    new: str
    tests: str


FAULTS = (
    Fault(
        "the hub broadcasts before it has stored its state",
        f"{HUB}/publisher.py",
        '        faults.reach("hub before store")\n',
        "        early = pack_broadcast(aggregator.broadcast())\n"
        "        await self._send_model(self._subjects.broadcast, early)\n"
        '        faults.reach("hub before store")\n',
        "federate/test_restart.py",
    ),
    Fault(
        "an upload of the newest received step is merged again",
        f"{HUB}/aggregator.py",
        "if upload.step <= self.records.received[k] or",
        "if upload.step < self.records.received[k] or",
        "federate/test_restart.py federate/test_hub.py",
    ),
    Fault(
        "a hub resumes past a half-received upload",
        f"{HUB}/publisher.py",
        "aggregator.snapshot(sequence, self._intake.unfinished)",
        "aggregator.snapshot(sequence, False)",
        "federate/test_restart.py",
    ),
    Fault(
        "a client's merged step falls back when nothing of it arrives",
        f"{HUB}/client_records.py",
        "            self.merged[k] = max(self.merged[k], upload.step)\n",
        "            self.merged[k] = max(self.merged[k], upload.step)\n"
        "        else:\n"
        "            self.merged[k] = 0\n",
        "federate/test_restart.py",
    ),
    Fault(
        "a broadcast between two syncs discards unsent gradients",
        "algorithms/send_gradients.py",
        "received=params, local=params, unsent=client.unsent)",
        "received=params, local=params, unsent=0 * client.unsent)",
        "federate/test_restart.py",
    ),
    Fault(
        "FedRes takes its late step one step too late",
        "parts/late.py",
        "(late.when > 0) & (late.when <= merged)",
        "(late.when > 0) & (late.when < merged)",
        "algorithms/test_fedres.py",
    ),
    Fault(
        "a model that is not finite is accepted",
        f"{HUB}/upload_format.py",
        "if not (largest <= self._finite and upload.weight <= self._finite):",
        "if not upload.weight <= self._finite:",
        "federate/test_hostile.py federate/test_hub.py",
    ),
    Fault(
        "a stated weight is believed",
        f"{HUB}/upload_format.py",
        "if upload.weight > self._most_weight[k]:",
        "if upload.weight > 1e300:",
        "federate/test_guard.py federate/test_hub.py federate/test_hostile.py",
    ),
    Fault(
        "a stale upload is merged",
        f"{HUB}/aggregator.py",
        "if self.version - upload.version > self.document.rules.staleness or unknown:",
        "if unknown:",
        "federate/test_hub.py federate/test_hostile.py",
    ),
    Fault(
        "nobody is quarantined",
        f"{HUB}/client_records.py",
        "np.flatnonzero(self.strikes >= limit)",
        "np.flatnonzero(self.strikes > 2**60 + limit)",
        "federate/test_hub.py federate/test_hostile.py",
    ),
    Fault(
        "a run is not held until a quorum has uploaded",
        f"{HUB}/aggregator.py",
        "return len(self.uploaded) >= wanted",
        "return True",
        "federate/test_away.py",
    ),
    Fault(
        "a client sends before it has stored its upload",
        f"{CLIENT}/session.py",
        "        if sends:\n            self.pending.add(upload.step, data)\n        self._save()\n",
        "        self._save()\n        if sends:\n            self.pending.add(upload.step, data)\n",
        "federate/test_persistence.py",
    ),
    Fault(
        "a client that returns does not send its pending uploads",
        f"{CLIENT}/pending_uploads.py",
        "for step, data in sorted(pending.items()):",
        "for step, data in sorted(pending.items())[1:]:",
        "federate/test_persistence.py",
    ),
    Fault(
        "a damaged state is read",
        "engines/federate/protocol/state_format.py",
        "if mark != _MARK or check != zlib.crc32(rest):",
        "if mark != _MARK:",
        "federate/test_persistence.py",
    ),
    Fault(
        "an older broadcast replaces a newer one",
        "engines/federate/transport/latest_broadcast.py",
        "broadcast.age > self.value.age",
        "broadcast.age != self.value.age",
        "federate/test_bad_broadcasts.py",
    ),
    Fault(
        "two processes use one folder",
        "disk.py",
        "        held.acquire(blocking=False)\n",
        "        pass\n",
        "federate/test_persistence.py run/test_damaged.py engines/test_resume.py",
    ),
    Fault(
        "the guard compares a client with itself",
        "algorithms/guarded.py",
        "others = jnp.sum(known) - known",
        "others = jnp.sum(known) - 0 * known",
        "algorithms/test_guarded.py",
    ),
    Fault(
        "OFedIQ does not divide by the probability to be sampled",
        "parts/participation.py",
        "return of_client(1 / constant(self.rate), k)",
        "return of_client(constant(self.rate) / constant(self.rate), k)",
        "algorithms/test_ofediq.py",
    ),
    Fault(
        "the quantiser rounds to the nearest level",
        "parts/quantiser.py",
        "(jnp.abs(vector) * stretch + draws).astype(jnp.int32)",
        "(jnp.abs(vector) * stretch + 0.5).astype(jnp.int32)",
        "parts/test_quantiser.py",
    ),
    Fault(
        "FedOMD's step is not projected",
        "parts/mirror.py",
        "return self.domain.project(params - rate * gradient)",
        "return params - rate * gradient",
        "parts/test_mirror.py algorithms/test_fedomd.py",
    ),
    Fault(
        "dynamic FedAvg does not divide by its epochs",
        "algorithms/send_epochs.py",
        "scale = eta / mine if self.normalised else eta",
        "scale = eta",
        "algorithms/test_dynamic_fedavg.py",
    ),
    Fault(
        "FedSEA averages one step late",
        "parts/sync.py",
        "(steps - self.offset) % self.period == 0",
        "(steps - 1 - self.offset) % self.period == 0",
        "algorithms/test_fedsea.py parts/test_sync.py",
    ),
    Fault(
        "error feedback forgets what a silent client owes",
        "engines/error_feedback.py",
        "jnp.where(heard, message - decoded, client.error)",
        "message - decoded",
        "algorithms/test_error_feedback.py",
    ),
    Fault(
        "a message arrives one step early",
        "engines/simulate/links.py",
        "links.sent + wires.up <= t",
        "links.sent + wires.up <= t + 1",
        "algorithms/test_delays.py",
    ),
    Fault(
        "messages that are one step late are dropped",
        "engines/simulate/links.py",
        "weights = jnp.where(here, links.weights, 0)",
        "weights = jnp.where(here & (wires.up != 1), links.weights, 0)",
        "contract/test_contract.py",
    ),
    Fault(
        "a broadcast is delivered twice",
        "engines/simulate/links.py",
        "fresh = newest > links.got",
        "fresh = newest >= links.got",
        "algorithms/test_delays.py",
    ),
    Fault(
        "the median gives a vote to each message",
        "parts/collect.py",
        "shares = jnp.where(arrived, got.weights / of_client[got.client], 0)",
        "shares = jnp.where(arrived, 1.0, 0)",
        "parts/test_collect.py",
    ),
    Fault(
        "a certificate is rounded down",
        "measure/certificate.py",
        "    if float(shown) < gap:\n",
        "    if False:\n",
        "measure/test_solver.py measure/test_certificates.py measure/test_regret.py",
    ),
    Fault(
        "two clients draw the same numbers",
        "random.py",
        "first = mix((key[0] ^ word) + _GOLDEN)",
        "first = mix((key[0] ^ (word >> 1)) + _GOLDEN)",
        "test_random.py",
    ),
)


def put(fault: Fault, package: Path) -> None:
    """Puts the fault into a copy of the package. Its place must be there once."""
    file = package / fault.file
    text = file.read_text()
    if text.count(fault.old) != 1:
        raise ValueError(f"{fault.title}: {fault.file} has its place {text.count(fault.old)} times")
    file.write_text(text.replace(fault.old, fault.new))


def caught_by(fault: Fault) -> str:
    """The first test that fails with the fault; empty if none does."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        put(fault, source / "mainstem")
        tests = [f"tests/{name}" for name in fault.tests.split()]
        found = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-qx",
                "-m",
                "not slow",
                "-p",
                "no:cacheprovider",
                *tests,
            ],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(source)},
            capture_output=True,
            text=True,
        )
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", found.stdout, re.MULTILINE)
    return failed[1] if failed else ""


def main() -> int:
    """Prints the test that catches each fault."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", nargs="*", type=int, help="which faults; all if left out")
    wanted = parser.parse_args().numbers or range(1, len(FAULTS) + 1)
    missed = 0
    for number in wanted:
        fault = FAULTS[number - 1]
        test = caught_by(fault)
        missed += not test
        print(f"{number:2}  {fault.title}: {test or 'NOT CAUGHT'}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
