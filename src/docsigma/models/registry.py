"""Every kind of model by name, and reading a model folder of any kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docsigma._extensions import find_registered, install_hint, registered_names
from docsigma.exceptions import InputError
from docsigma.models.bayesian_smm import BayesianSMM
from docsigma.persistence import StoredModel, read_model

if TYPE_CHECKING:
    import os

    from docsigma.models._count_model import CountModel


# Classes by the name in config.json of a model folder; other distributions add theirs
# by entry points.
MODELS: dict[str, type[CountModel]] = {"BayesianSMM": BayesianSMM}


def load_model(folder: str | os.PathLike[str]) -> CountModel:
    """Read the folder that ``save`` of a model wrote, whatever the kind of model.

    Raises
    ------
    InputError
        If the folder is damaged, or holds a kind that no installed distribution has.

    Examples
    --------
    >>> import tempfile
    >>> from docsigma import BayesianSMM, load_corpus
    >>> smm = BayesianSMM(3, max_iter=5, random_state=0)
    >>> smm = smm.fit(load_corpus("synthetic").train.counts)
    >>> folder = tempfile.mkdtemp() + "/model"
    >>> smm.save(folder)
    >>> type(load_model(folder)).__name__
    'BayesianSMM'
    """
    return restore_model(read_model(folder), folder)


def restore_model(stored: StoredModel, folder: str | os.PathLike[str]) -> CountModel:
    """Return the model that `stored` describes; `folder` is for error messages."""
    kind = find_registered("models", stored.kind, MODELS)
    if kind is None:
        known = ", ".join(registered_names("models", MODELS))
        where = install_hint("models", stored.kind)
        if "classifier" in stored.config:
            where = "a classifier, not a model: pass the folder that it was made from"
        raise InputError(
            f"{folder} holds something of the kind {stored.kind}, which is "
            + (where or f"none of the models that docsigma knows: {known}")
        )
    return kind._unpack(stored, folder)
