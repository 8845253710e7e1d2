"""How torch's threads wait for each other."""

from __future__ import annotations

import os
import sys

# How often a thread looks before it sleeps under libgomp, which comes with torch for
# Linux: some 10 microseconds, where its default is 3 milliseconds. With 0 a quiet fit
# takes half as long again (benchmarks/busy_neighbour.py).
SPINS = "1000"
# A user's word on waiting: OpenMP's own, that of libiomp5 and that of libgomp.
CHOICES = ("OMP_WAIT_POLICY", "KMP_BLOCKTIME", "GOMP_SPINCOUNT")


def wait_passively() -> None:
    """Let threads that wait for others soon sleep rather than spin.

    By default OpenMP's threads spin for milliseconds at the end of each parallel step.
    Where another process has one of the cores, the threads that wait keep the one they
    wait for from running, and a fit takes many times as long. The environment is read
    once, when OpenMP is loaded: where torch is loaded already nothing is done. A user's
    own setting of any of `CHOICES` stays, alone.
    """
    if "torch" in sys.modules or any(name in os.environ for name in CHOICES):
        return
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    # It goes before the policy, and only libgomp reads it.
    os.environ["GOMP_SPINCOUNT"] = SPINS
