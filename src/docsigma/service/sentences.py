"""Errors of pydantic, each as one sentence."""

from __future__ import annotations

from typing import Any

_BODY = 'an object such as {"texts": ["the printer is on fire"]}'


def sentence_of(error: Any) -> str:
    """Return one sentence that names the field, what it must be and what was found.

    Examples
    --------
    >>> found = {"type": "list_type", "loc": ("body", "texts"), "input": "sun"}
    >>> sentence_of(found)
    '`texts` must be a list, got a string'
    """
    kind, place = error.get("type"), [str(part) for part in error.get("loc", ())]
    if kind == "json_invalid":
        return "the body of the request is not JSON"
    name = ".".join(part for part in place if part not in ("body", "query"))
    value = error.get("input")
    if not name:
        found = "nothing" if value is None else _kind_of(value)
        return f"the body of the request must be {_BODY}, got {found}"
    if kind == "missing":
        fields = [f"`{field}`" for field in list(value)[:5]] if value else []
        has = f"the request has {', '.join(fields)}" if fields else "it is required"
        return f"`{name}` is missing: {has}"
    if kind == "extra_forbidden":
        return f"`{name}` is no field of this request: /docs shows the fields"
    if kind in ("list_type", "string_type"):
        wanted = {"list_type": "a list", "string_type": "a string"}[kind]
        return f"`{name}` must be {wanted}, got {_kind_of(value)}"
    message = str(error.get("msg", "is wrong"))
    return f"`{name}`: {message[:1].lower()}{message[1:]}"


def _kind_of(value: Any) -> str:
    """Return what JSON calls a value."""
    for kind, name in (
        (bool, "a boolean"),
        ((int, float), "a number"),
        (str, "a string"),
        (list, "a list"),
        (dict, "an object"),
    ):
        if isinstance(value, kind):
            return name
    return "null"
