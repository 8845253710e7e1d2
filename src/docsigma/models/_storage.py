"""Fitted models and checkpoints on disk."""

from __future__ import annotations

import contextlib
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from docsigma._base import Part
from docsigma.counts import Vocabulary
from docsigma.exceptions import InputError
from docsigma.parts import KINDS, kind_name, under
from docsigma.persistence import (
    Arrays,
    StoredModel,
    read_checkpoint,
    write_checkpoint,
)
from docsigma.ranks import Ranks

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from docsigma.counts import Counts
    from docsigma.models._subspace_model import SubspaceModel
    from docsigma.trainers import Trainer


Model = TypeVar("Model", bound="SubspaceModel")
# Parameters that may differ between a run and the run that resumes it.
FREE = {"max_iter", "tol", "device", "output", "random_state"}
FREE |= {"inference_max_iter", "inference_tol", "rounding"}
ARRAYS = ("components_", "log_unigram_", "training_log_unigram_")
SCALARS = ("n_features_in_", "n_iter_", "converged_", "seed_", "history_")


def _parameters(model: SubspaceModel) -> dict[str, Any]:
    parameters: dict[str, Any] = model.get_params(deep=False)
    parameters.pop("verbose", None)  # of a run, not of a model
    if not isinstance(parameters["random_state"], (int, np.integer)):
        # A RandomState cannot be written; the seed drawn from it is saved instead.
        parameters["random_state"] = None
    return {name: _plain(name, value) for name, value in parameters.items()}


def _plain(name: str, value: Any) -> Any:
    """Return a value that JSON can hold."""
    if isinstance(value, Part):
        own = {k: _plain(k, v) for k, v in value.get_params(deep=False).items()}
        return {"kind": kind_name(name, value), "parameters": own}
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    return value


def _parameter(name: str, value: Any, config: Path) -> Any:
    """Invert :func:`_plain`; a part's class comes from the registry."""
    if name not in KINDS or not isinstance(value, (dict, str)) or value == "auto":
        return value
    kind = str(value if isinstance(value, str) else value.get("kind"))
    if kind not in KINDS[name]:
        raise InputError(
            f"{config} has a {name} of the kind {kind!r}, which this docsigma does not "
            f"know (it knows {', '.join(KINDS[name])})"
        )
    if isinstance(value, str):
        return value
    return KINDS[name][kind](**value["parameters"])


def learned_arrays(model: SubspaceModel) -> dict[str, NDArray[Any]]:
    """Return all that a fitted model has learned, without its vocabulary."""
    arrays = {name: getattr(model, name) for name in ARRAYS}
    parts = getattr(model, "parts_", None)
    if parts is not None:
        arrays |= {f"parts.{name}": array for name, array in parts.arrays().items()}
        if model.components_variance_ is not None:
            arrays["components_variance_"] = model.components_variance_
    return arrays


def pack(model: SubspaceModel) -> StoredModel:
    """Return a fitted model as it is saved."""
    fitted = {name: getattr(model, name) for name in SCALARS}
    names = getattr(model, "feature_names_in_", None)
    fitted["feature_names_in_"] = None if names is None else list(names)
    arrays, views = model._learned_arrays(), getattr(model, "views_", None)
    if model.reference_ is not None:
        arrays["reference_"] = model.reference_
    return StoredModel(
        kind=type(model).__name__,
        config={
            "parameters": _parameters(model),
            "fitted": fitted,
            "trained_on": model.trained_on_,
            **({} if views is None else _stored_views(model)),
        },
        arrays=arrays,
        vocabulary=_stored_words(model),
    )


def _stored_views(model: SubspaceModel) -> dict[str, Any]:
    assert model.views_ is not None
    views = list(model.views_.items())
    return {"views": views, "n_fitted_views": model.n_fitted_views_}


def _stored_words(model: SubspaceModel) -> dict[str, Any] | None:
    """Return the vocabulary, or those of all views by their names."""
    if model.vocabulary_ is not None:
        return model.vocabulary_.to_dict()
    views = getattr(model, "vocabularies_", {})
    return {name: words.to_dict() for name, words in views.items()} or None


def unpack(
    cls: type[Model], stored: StoredModel, folder: str | os.PathLike[str]
) -> Model:
    """Invert :func:`pack`; `folder` is for error messages."""
    config = Path(folder) / "config.json"
    try:
        parameters = stored.config["parameters"].items()
        model = cls(**{name: _parameter(name, v, config) for name, v in parameters})
        for name in ARRAYS:
            setattr(model, name, stored.arrays[name])
        fitted = stored.config["fitted"]
        for name in SCALARS:
            setattr(model, name, fitted[name])
        names = fitted["feature_names_in_"]
        model.trained_on_ = stored.config["trained_on"]
    except (KeyError, TypeError) as error:
        raise InputError(f"{config} is damaged: {error}") from error
    if names is not None:
        model.feature_names_in_ = np.asarray(names, dtype=object)
    expected = (model.n_components, model.n_features_in_)
    if model.components_.shape != expected:
        raise InputError(
            f"{folder} is damaged: its loadings have the shape "
            f"{model.components_.shape}, {config.name} says {expected}"
        )
    if hasattr(model, "_parts"):
        model.parts_ = model._parts()
        model.parts_.set_arrays(under("parts.", stored.arrays))
        model.components_variance_ = stored.arrays.get("components_variance_")
    model.reference_ = stored.arrays.get("reference_")
    model.vocabulary_ = None
    views = stored.config.get("views")
    if views is not None:
        model.views_ = dict(views)
        model.n_fitted_views_ = stored.config.get("n_fitted_views")
    if stored.vocabulary is not None:
        words: Any = stored.vocabulary
        if views is None:
            model.set_vocabulary(Vocabulary.from_dict(words))
        else:
            model.set_vocabularies(
                {name: Vocabulary.from_dict(own) for name, own in words.items()}
            )
    return model


class CheckpointFile:
    """The checkpoint of one training, with its parameters and its counts' digest.

    If several processes train, each writes the rows of its documents to its own file,
    named by the pass; then the first writes the checkpoint, with the number of such
    files, and removes those of the previous one.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        model: SubspaceModel,
        counts: Counts,
        covariates: NDArray[np.float64] | None = None,
    ) -> None:
        self.path = Path(path)
        self._parameters = _parameters(model)
        self._digest = counts.digest
        if getattr(model, "views_", None) is not None:
            self._digest += f" {model.views_}"
        if covariates is not None:
            own = hashlib.sha256(np.ascontiguousarray(covariates).data).hexdigest()
            self._digest = f"{self._digest} {own}"

    def write(self, trainer: Trainer) -> None:
        """Write the state of `trainer`."""
        ranks = trainer.ranks
        config = {
            "parameters": self._parameters,
            "counts": self._digest,
            "seed": trainer.seed,
            "history": trainer.rows(),
            "n_ranks": ranks.size,
        }
        arrays = {k: v.cpu().numpy() for k, v in trainer.state().items()}
        if ranks.size > 1:
            own = {name: arrays.pop(name) for name in trainer.document_tensors()}
            write_checkpoint(self._shard(trainer.epoch, ranks), {}, own)
            ranks.wait()
        if ranks.rank == 0:
            write_checkpoint(self.path, config, arrays)
            remove_others(self.path, (trainer.epoch, ranks.size))
        ranks.wait()

    def _shard(self, n_passes: int, ranks: Ranks) -> Path:
        """Return the path of the file with the rows of one process."""
        own = f"pass{n_passes}.{ranks.rank}-of-{ranks.size}"
        return self.path.with_name(f"{self.path.stem}.{own}{self.path.suffix}")

    def _add_rows(
        self, trainer: Trainer, arrays: Arrays, n_passes: int, n_ranks: int
    ) -> None:
        """Add the rows of this process's documents, whoever wrote them, to `arrays`."""
        wanted = trainer.documents_of(trainer.ranks)
        found: Arrays = {}
        for rank in range(n_ranks):
            ranks = Ranks(rank, n_ranks)
            _, place, own = np.intersect1d(
                trainer.documents_of(ranks),
                wanted,
                assume_unique=True,
                return_indices=True,
            )
            if len(own) < len(wanted) and not len(own):
                continue
            rows = arrays
            if n_ranks > 1:
                _, rows = read_checkpoint(self._shard(n_passes, ranks))
            for name in trainer.document_tensors():
                shape = (len(wanted), *rows[name].shape[1:])
                found.setdefault(name, np.empty(shape, rows[name].dtype))
                found[name][own] = rows[name][place]
        arrays |= found

    def restore(self, trainer: Trainer) -> None:
        """Restore the state in the file, if it belongs to this training.

        Remains of an unfinished checkpoint of a killed run are removed.
        """
        config, arrays = read_checkpoint(self.path)
        if config["counts"] != self._digest:
            raise InputError(
                f"{self.path} was written for other documents or covariates than those "
                "given, or for the same ones on disk where these are in memory, or "
                "vice versa"
            )
        # The fast solver plans its learning rates for the number of passes.
        fast = self._parameters["solver"] == "fast"
        free = FREE - {"max_iter"} if fast else FREE
        for name, now in self._parameters.items():
            before = config["parameters"][name]
            if name not in free and before != now:
                raise InputError(
                    f"{self.path} was written with {name}={before!r}, not {now!r}"
                )
        trainer.seed = int(config["seed"])
        n_passes, n_ranks = len(config["history"]), int(config["n_ranks"])
        if max(n_ranks, trainer.ranks.size) > 1:
            self._add_rows(trainer, arrays, n_passes, n_ranks)
        state = {name: torch.from_numpy(array) for name, array in arrays.items()}
        trainer.restore(state, config["history"])
        trainer.ranks.wait()
        if trainer.ranks.rank == 0:
            remove_others(self.path, (n_passes, n_ranks))


def remove_others(path: Path, keep: tuple[int, int] = (0, 0)) -> None:
    """Remove a checkpoint's per-process files, and temporary ones of a killed run.

    Those whose numbers of passes and processes are `keep` stay.
    """
    stem, suffix = re.escape(path.stem), re.escape(path.suffix)
    shard, temporary = r"\.pass(\d+)\.\d+-of-(\d+)", r"\.[0-9a-f]{8}\.tmp"
    names = rf"\.{stem}(?:{shard})?{temporary}{suffix}|{stem}{shard}{suffix}"
    # One that cannot be removed does no harm.
    with contextlib.suppress(OSError):
        for file in path.parent.iterdir():
            found = re.fullmatch(names, file.name)
            if not file.is_file() or file.is_symlink():
                continue
            if found and (not found[4] or (int(found[3]), int(found[4])) != keep):
                file.unlink()
