"""Every kind of model by name, and reading a model folder of any kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docsigma.exceptions import InputError
from docsigma.models.bayesian_smm import BayesianSMM
from docsigma.models.nvdm import NVDM
from docsigma.models.smm import SMM
from docsigma.persistence import StoredModel, read_model

if TYPE_CHECKING:
    import os

    from docsigma.models._count_model import CountModel

__all__ = ["MODELS", "load_model", "restore_model"]

# What config.json of a model folder calls a kind, and its class.
MODELS: dict[str, type[CountModel]] = {
    "BayesianSMM": BayesianSMM,
    "SMM": SMM,
    "NVDM": NVDM,
}


def load_model(folder: str | os.PathLike[str]) -> CountModel:
    """Read a model folder, whichever kind of model it holds.

    Parameters
    ----------
    folder : path
        What ``save`` of a model wrote.

    Returns
    -------
    BayesianSMM, SMM or NVDM
        The fitted model.

    Raises
    ------
    InputError
        If the folder is damaged, or holds something that is not one of `MODELS`.

    Examples
    --------
    >>> import tempfile
    >>> from docsigma import SMM, load_corpus
    >>> smm = SMM(3, max_iter=5, random_state=0)
    >>> smm = smm.fit(load_corpus("synthetic").train.counts)
    >>> folder = tempfile.mkdtemp() + "/model"
    >>> smm.save(folder)
    >>> type(load_model(folder)).__name__
    'SMM'
    """
    return restore_model(read_model(folder), folder)


def restore_model(stored: StoredModel, folder: str | os.PathLike[str]) -> CountModel:
    """Make the model that `stored` describes; `folder` is for error messages."""
    if stored.kind not in MODELS:
        raise InputError(
            f"{folder} holds something of the kind {stored.kind}, which is none of the "
            f"models that docsigma knows: {', '.join(MODELS)}"
        )
    return MODELS[stored.kind]._unpack(stored, folder)
