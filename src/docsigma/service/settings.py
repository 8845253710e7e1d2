"""What the service allows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServiceSettings:
    """Limits of the service, and its key.

    Attributes
    ----------
    api_key : str or None
        What requests must carry; None: no key is asked for.
    max_body : int
        Bytes of a request at the most.
    max_documents : int
        Documents of a request at the most.
    max_waiting : int
        Documents that may wait for their turn; above, requests are turned away.
    timeout : float
        Seconds that a request may take, with the time it takes to arrive.
    """

    api_key: str | None = None
    max_body: int = 8 * 2**20
    max_documents: int = 512
    max_waiting: int = 4096
    timeout: float = 30.0
