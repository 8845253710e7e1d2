r"""A server under load: how fast, and whether it ever answers wrongly.

    python benchmarks/service_load.py model --docs 20newsgroups \
        --json benchmarks/results/service.json

It starts `docsigma serve`, asks for single documents at a steady rate, then for
batches, and compares their rate with that of `posterior()` called directly. Then comes
a mixed load of `--seconds`: single documents and batches, bad and oversized requests,
and clients that hang up. Every answer is compared with the library's. It exits with 1
if one is off by more than 1e-4, if any answer is not the expected one, a 500 above all,
or if the memory of the server grows without end.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from docsigma import load_corpus, load_model
from docsigma.metrics.environment import environment

TOLERANCE = 1e-4
JSON = {"Content-Type": "application/json"}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


class Server:
    """A server in a process of its own."""

    def __init__(self, model: Path, *options: object) -> None:
        self.port = free_port()
        command = ["-m", "docsigma.cli", "serve", str(model), "--port", str(self.port)]
        command += map(str, options)
        environ = {k: v for k, v in os.environ.items() if k != "DOCSIGMA_API_KEY"}
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environ,
        )
        deadline = time.monotonic() + 120
        while not self._is_ready():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError("the server does not start")
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        try:
            return self.ask("/ready", None)[0] == 200
        except OSError:
            return False

    def ask(self, path: str, body: bytes | None) -> tuple[int, bytes]:
        """Return status and body of an answer; without a body the request is a GET."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            client.request("GET" if body is None else "POST", path, body, JSON)
            answer = client.getresponse()
            return answer.status, answer.read()
        finally:
            client.close()

    def hang_up(self, body: bytes, *, early: bool) -> None:
        """Ask and go away, with half of the request or before the answer."""
        head = f"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as client:
            client.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n")
            client.sendall(body[: len(body) // 2] if early else body)

    def memory(self) -> int:
        """Return the resident memory in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = (row for row in status.splitlines() if row.startswith("VmRSS"))
        return int(line.split()[1]) * 1024

    def stop(self) -> int:
        """Ask it to stop, as a service manager does; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def request(texts: list[str]) -> bytes:
    return json.dumps({"texts": texts}).encode()


def single_documents(
    server: Server, texts: list[str], rate: float, n: int, path: str = "/embed"
) -> Any:
    """Ask for `n` single documents, `rate` per second; return their times."""
    times: list[float] = []
    # All clients are there before the first request is due.
    start = time.perf_counter() + 1.0

    def ask(i: int) -> None:
        due = start + i / rate
        time.sleep(max(0.0, due - time.perf_counter()))
        status, _ = server.ask(path, request([texts[i % len(texts)]]))
        assert status == 200, status
        # From when it was due: a server that falls behind is not let off.
        times.append(time.perf_counter() - due)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = 1000 * np.array(times)
    return {
        "rate": rate,
        "n_requests": len(found),
        "p50_ms": float(np.percentile(found, 50)),
        "p95_ms": float(np.percentile(found, 95)),
        "p99_ms": float(np.percentile(found, 99)),
    }


def batches(server: Server, model: Any, texts: list[str], size: int, n: int) -> Any:
    """Compare batches over HTTP with the library, counting and embedding alike."""
    parts = [texts[i * size : (i + 1) * size] for i in range(n)]
    direct = served = 0.0
    for part in parts:
        start = time.perf_counter()
        model.posterior(model.vocabulary_.count(part).counts)
        direct += time.perf_counter() - start
        start = time.perf_counter()
        status, _ = server.ask("/embed", request(part))
        served += time.perf_counter() - start
        assert status == 200, status
    total = sum(map(len, parts))
    return {
        "size": size,
        "documents_per_second": total / served,
        "documents_per_second_directly": total / direct,
        "share_of_direct": direct / served,
    }


class MixedLoad:
    """Clients that ask for good and bad things at random."""

    def __init__(self, server: Server, texts: list[str], means: Any) -> None:
        self.server, self.texts, self.means = server, texts, means
        self.statuses: Counter[str] = Counter()
        self.worst = 0.0
        self.unexpected: list[str] = []

    def run(self, seconds: float, n_clients: int = 4) -> list[int]:
        """Ask for so long; return the server's memory every so often."""
        self._end = time.monotonic() + seconds
        clients = [
            threading.Thread(target=self._client, args=(seed,))
            for seed in range(n_clients)
        ]
        for client in clients:
            client.start()
        memory = []
        while any(client.is_alive() for client in clients):
            time.sleep(min(1.0, seconds / 20))
            memory.append(self.server.memory())
        return memory

    def _client(self, seed: int) -> None:
        draw = random.Random(seed)
        while time.monotonic() < self._end:
            kind = draw.choice(["good"] * 5 + ["bad", "large", "early", "late"])
            rows = draw.sample(range(len(self.texts)), draw.choice([1, 1, 1, 8]))
            body = request([self.texts[row] for row in rows])
            if kind in ("early", "late"):
                self.server.hang_up(body, early=kind == "early")
                self.statuses[f"hung up {kind}"] += 1
                continue
            if kind == "bad":
                body = draw.choice([b"{", b'{"texts": 1}', b"\xff", body + b"x"])
            if kind == "large":
                body = request(["x" * (9 * 2**20)])
            try:
                status, answer = self.server.ask("/embed", body)
            except OSError:
                # A server may close on a request that it will not read to its end.
                self.statuses[f"{kind} closed"] += 1
                if kind == "good":
                    self.unexpected.append("closed")
                continue
            self.statuses[f"{kind} {status}"] += 1
            if status != {"good": 200, "bad": 422, "large": 413}[kind]:
                self.unexpected.append(f"{kind} {status}")
            elif kind == "good":
                found = [d["mean"] for d in json.loads(answer)["documents"]]
                off = float(np.abs(np.array(found) - self.means[rows]).max())
                self.worst = max(self.worst, off)


def growth(memory: list[int]) -> float:
    """Return how much larger the last quarter is than the second."""
    quarter = max(1, len(memory) // 4)
    second, last = memory[quarter : 2 * quarter], memory[-quarter:]
    return max(last) / max(second or last) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--docs", default="20newsgroups")
    parser.add_argument("--limit", type=int, default=1024, help="documents")
    parser.add_argument("--rate", type=float, default=20.0)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    model: Any = load_model(given.model)
    texts = load_corpus(given.docs).test.texts
    assert texts is not None
    texts = [text for text in texts[: given.limit] if text.strip()]
    means = model.posterior(model.vocabulary_.count(texts).counts).mean
    server = Server(given.model)
    report: dict[str, Any] = {"n_components": int(model.n_components)}
    report["n_words"] = int(model.n_features_in_)
    try:
        report["single"] = single_documents(server, texts, given.rate, given.requests)
        report["batches"] = batches(server, model, texts, given.batch, given.batches)
        load = MixedLoad(server, texts, means)
        memory = load.run(given.seconds)
    finally:
        code = server.stop()
    report["mixed"] = {
        "seconds": given.seconds,
        "answers": dict(sorted(load.statuses.items())),
        "unexpected": sorted(set(load.unexpected)),
        "largest_difference": load.worst,
        "memory_mib": max(memory) / 2**20,
        "memory_growth": growth(memory),
        "exit_code": code,
    }
    report["environment"] = environment(on_gpu=False)
    text = json.dumps(report, indent=1)
    print(text)
    if given.json is not None:
        given.json.write_text(text + "\n", "utf-8")
    flat = growth(memory) < 0.1
    sys.exit(0 if flat and not load.unexpected and load.worst < TOLERANCE else 1)


if __name__ == "__main__":
    main()
