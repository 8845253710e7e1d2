"""A corpus prepared for exploring, labelling and comparing."""

from __future__ import annotations
