"""Limits of the service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServiceSettings:
    """Limits of the service, and its key.

    Attributes
    ----------
    api_key : str or None
        Key that requests must send; None means that they need none.
    max_body, max_documents : int
        Most bytes and documents per request.
    max_waiting : int
        Most documents that wait; requests beyond are refused.
    timeout : float
        Seconds that a request may take, including its transfer.
    """

    api_key: str | None = None
    max_body: int = 8 * 2**20
    max_documents: int = 512
    max_waiting: int = 4096
    timeout: float = 30.0
