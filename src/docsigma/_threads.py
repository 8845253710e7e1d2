"""How torch's threads wait for each other."""

from __future__ import annotations

import os
import sys

# Spins of a waiting thread before it sleeps, under libgomp (torch for Linux has it):
# about 10 microseconds, where the default is 3 milliseconds. With 0, a fit on an idle
# machine takes 1.5 times as long (benchmarks/busy_neighbour.py).
SPINS = "1000"
# With any of these a user has chosen: OpenMP's own, that of libiomp5 and of libgomp.
CHOICES = ("OMP_WAIT_POLICY", "KMP_BLOCKTIME", "GOMP_SPINCOUNT")


def wait_passively() -> None:
    """Make OpenMP threads that wait for others sleep soon, not spin.

    By default they spin for milliseconds at the end of each parallel step. If another
    process uses one of the cores, they keep the thread they wait for from running, and
    a fit takes many times as long. OpenMP reads the environment once, so nothing is
    done after torch has been imported, nor if the user has set any of `CHOICES`.
    """
    if "torch" in sys.modules or any(name in os.environ for name in CHOICES):
        return
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    # Overrides the policy; only libgomp reads it.
    os.environ["GOMP_SPINCOUNT"] = SPINS
