"""Models and checkpoints on disk: safetensors and JSON, no code.

A model is a folder: ``config.json`` (schema version, parameters, history, checksum),
``model.safetensors``, ``vocabulary.json`` if the model knows its words, and a
``README.md`` for people and model hubs, which is not read back. A checkpoint is one
safetensors file with its configuration inside, so that one rename replaces it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from docsigma._files import (
    CONFIG,
    SCHEMA_VERSION,
    atomic_folder,
    check_schema,
    read_config,
    read_json_object,
)
from docsigma._tensors import read_tensors, write_tensors
from docsigma.exceptions import InputError

FORMAT = "docsigma-model"
TENSORS, VOCABULARY = "model.safetensors", "vocabulary.json"
CARD = "README.md"
Arrays = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class StoredModel:
    """Contents of a model folder.

    Attributes
    ----------
    kind : str
        Name of the model's class.
    config : dict
        JSON-safe values: parameters, fitted scalars, history.
    arrays : dict of arrays
        Fitted arrays.
    vocabulary : dict or None
        As :meth:`docsigma.counts.Vocabulary.to_dict` returns it.
    """

    kind: str
    config: dict[str, Any]
    arrays: Arrays
    vocabulary: dict[str, Any] | None = None


def _dump(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, allow_nan=True) + "\n", "utf-8")


def write_model(
    folder: str | os.PathLike[str],
    model: StoredModel,
    card: str | None = None,
    *,
    overwrite: bool = True,
) -> None:
    """Write a model folder, whole or not at all.

    `card` is the text of its README. An older folder is replaced, or refused without
    `overwrite`.
    """
    from docsigma import __version__

    with atomic_folder(folder, overwrite) as temporary:
        write_tensors(temporary / TENSORS, model.arrays, {"kind": model.kind})
        digest = hashlib.sha256((temporary / TENSORS).read_bytes()).hexdigest()
        if model.vocabulary is not None:
            _dump(temporary / VOCABULARY, model.vocabulary)
        if card is not None:
            (temporary / CARD).write_text(card, "utf-8")
        config = {
            "format": FORMAT,
            "schema_version": SCHEMA_VERSION,
            "docsigma_version": __version__,
            "kind": model.kind,
            "tensors_sha256": digest,
            "has_vocabulary": model.vocabulary is not None,
            **model.config,
        }
        _dump(temporary / CONFIG, config)


def read_model(folder: str | os.PathLike[str], kind: str | None = None) -> StoredModel:
    """Read and check a model folder; it must be of the class named `kind`, if given."""
    root = Path(folder)
    config = read_config(root, FORMAT)
    if kind is not None and config.get("kind") != kind:
        hint = ": `docsigma classifier fit` makes one" if "Classifier" in kind else ""
        raise InputError(f"{root} holds a {config.get('kind')}, not a {kind}{hint}")
    if not (root / TENSORS).is_file():
        raise InputError(f"the model folder {root} has no {TENSORS}")
    arrays, metadata = read_tensors(root / TENSORS)
    digest = hashlib.sha256((root / TENSORS).read_bytes()).hexdigest()
    expected = (config.get("tensors_sha256"), config.get("kind"))
    if (digest, metadata.get("kind")) != expected:
        raise InputError(
            f"{root / TENSORS} is damaged or of another model: its checksum is not "
            f"the one in {CONFIG}"
        )
    vocabulary = None
    if config.get("has_vocabulary"):
        lacks = f"the model folder {root} has no {VOCABULARY}"
        vocabulary = read_json_object(root / VOCABULARY, lacks)
    return StoredModel(str(config.get("kind")), config, arrays, vocabulary)


def write_checkpoint(
    path: str | os.PathLike[str], config: Mapping[str, Any], arrays: Arrays
) -> None:
    """Write a checkpoint, whole or not at all."""
    full = {"schema_version": SCHEMA_VERSION, **config}
    write_tensors(path, arrays, {"kind": "checkpoint", "config": json.dumps(full)})


def read_checkpoint(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Read what :func:`write_checkpoint` wrote."""
    arrays, metadata = read_tensors(path)
    if metadata.get("kind") != "checkpoint":
        raise InputError(f"{path} is not a docsigma checkpoint")
    try:
        config = json.loads(metadata["config"])
    except (KeyError, ValueError) as error:
        raise InputError(
            f"{path} is damaged: its configuration is unreadable"
        ) from error
    check_schema(Path(path), config)
    return config, arrays
