"""Telephone speech: Switchboard, and Fisher for those who have its licence."""

from __future__ import annotations
