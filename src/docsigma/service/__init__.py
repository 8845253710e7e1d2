"""The REST service."""

from __future__ import annotations
