"""Language models on disk, in the layout in which fastai publishes its own.

Two files: a torch state dictionary (``.pth``) and a pickled list of words (``.pkl``),
as in fastai 1's archive of a model trained on WikiText-103. Neither file can run code
here: tensors are read by torch's own restricted reader, the list by one that refuses
every class.
"""

from __future__ import annotations

import os
import pickle
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from docsigma._files import atomic_file
from docsigma.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from docsigma_paper.classifiers.ulmfit.language_model import LanguageModel


Location = str | os.PathLike[str]
WeightsPath = Location | tuple[Location, Location]
_VECTORS, _BIAS = "0.encoder.weight", "1.decoder.bias"
_LAYER = {
    "weight_hh_l0": "0.rnns.{}.weight_hh_l0_raw",
    "weight_ih_l0": "0.rnns.{}.module.weight_ih_l0",
    "bias_ih_l0": "0.rnns.{}.module.bias_ih_l0",
    "bias_hh_l0": "0.rnns.{}.module.bias_hh_l0",
}
_DAMAGE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
)


@dataclass(frozen=True, eq=False)
class PublishedWeights:
    """Contents of the two files.

    Attributes
    ----------
    state : dict of tensors
        By fastai's names.
    words : list of str
        Word of each row of the word vectors.
    source : Path
        The ``.pth`` file.
    pretrained_on : str
        What the model was trained on, in words.
    """

    state: dict[str, Tensor]
    words: list[str]
    source: Path
    pretrained_on: str

    def load_into(self, model: LanguageModel, words: Sequence[str]) -> None:
        """Set the weights of `model`, whose vocabulary is `words`.

        A word that the files do not have gets the mean of all word vectors, and the
        mean of the softmax's biases.

        Raises
        ------
        InputError
            If a tensor is missing, not finite, or of a size that the model has not.
        """
        numbers = {word: number for number, word in enumerate(self.words)}
        index = torch.tensor([numbers.get(word, -1) for word in words])
        size = model.encoder.embedding_size
        vectors = self._tensor(_VECTORS, (len(self.words), size))
        bias = torch.zeros(len(self.words))
        if _BIAS in self.state:
            bias = self._tensor(_BIAS, (len(self.words),))
        lstms = model.encoder.lstms
        if _LAYER["weight_hh_l0"].format(len(lstms)) in self.state:
            raise InputError(
                f"{self.source} has more than the {len(lstms)} layers of `n_layers`"
            )
        with torch.no_grad():
            for number, layer in enumerate(lstms):
                for own, theirs in _LAYER.items():
                    parameter = layer.get_parameter(own)
                    shape = tuple(parameter.shape)
                    parameter.copy_(self._tensor(theirs.format(number), shape))
            # The mean comes last, where -1 finds it.
            model.encoder.embedding.copy_(_with_mean(vectors)[index])
            model.bias.copy_(_with_mean(bias)[index])

    def _tensor(self, name: str, shape: tuple[int, ...]) -> Tensor:
        tensor = self.state.get(name)
        if tensor is None:
            raise InputError(
                f"{self.source} has no tensor `{name}`: it is not in fastai 1's layout "
                "of an AWD-LSTM, or has fewer layers than `n_layers`"
            )
        if tuple(tensor.shape) != shape:
            raise InputError(
                f"{self.source} has `{name}` of shape {tuple(tensor.shape)}, but the "
                f"parameters and the list of words ask for {shape}"
            )
        tensor = tensor.float()
        if not bool(tensor.isfinite().all()):
            raise InputError(f"{self.source} has non-finite values in `{name}`")
        return tensor


def _with_mean(rows: Tensor) -> Tensor:
    return torch.cat([rows, rows.mean(dim=0, keepdim=True)])


def read_weights(weights: WeightsPath) -> PublishedWeights:
    """Read a published language model.

    Parameters
    ----------
    weights : path or pair of paths
        A folder with one ``.pth`` and one ``.pkl`` file; or the ``.pth`` file, the
        only ``.pkl`` file of its folder being its words; or both files.

    Raises
    ------
    InputError
        If a file is missing or damaged, or holds something else.
    """
    tensors, words = locate_weights(weights)
    state = _read_state(tensors)
    known = state.get("pretrained_on")
    # fastai nests the weights if it stored the optimiser with them.
    state = state["model"] if isinstance(state.get("model"), dict) else state
    return PublishedWeights(
        {name: value for name, value in state.items() if torch.is_tensor(value)},
        _read_words(words),
        tensors,
        known if isinstance(known, str) else f"wt103 ({tensors})",
    )


def write_weights(
    folder: Location, model: LanguageModel, words: Sequence[str], pretrained_on: str
) -> None:
    """Write a language model so that :func:`read_weights` can read it.

    Parameters
    ----------
    folder : path
        Made if need be; gets ``model.pth`` and ``words.pkl``.
    model : LanguageModel
        The model.
    words : sequence of str
        Its vocabulary.
    pretrained_on : str
        What it was trained on, in words.
    """
    vectors = model.encoder.embedding.detach().cpu()
    state = {
        _VECTORS: vectors,
        "0.encoder_dp.emb.weight": vectors,
        "1.decoder.weight": vectors,
        _BIAS: model.bias.detach().cpu(),
    }
    for number, layer in enumerate(model.encoder.lstms):
        for own, theirs in _LAYER.items():
            # A copy: on a GPU the weights of a layer share one block of memory.
            weight = layer.get_parameter(own).detach().cpu().clone()
            state[theirs.format(number)] = weight
    root = Path(folder)
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {root}: {error.strerror}") from error
    with atomic_file(root / "model.pth") as temporary:
        torch.save({"model": state, "pretrained_on": pretrained_on}, temporary)
    with atomic_file(root / "words.pkl") as temporary:
        temporary.write_bytes(pickle.dumps(list(words)))


def locate_weights(weights: WeightsPath) -> tuple[Path, Path]:
    """Return the ``.pth`` and the ``.pkl`` file; see :func:`read_weights`."""
    if isinstance(weights, tuple):
        if len(weights) != 2:
            raise InputError(
                f"`weights` must be a path or two paths, got {len(weights)} paths"
            )
        tensors, words = map(Path, weights)
    else:
        tensors = Path(weights)
        folder = tensors.parent
        if tensors.is_dir():
            folder = tensors
            tensors = _only(folder, ".pth")
        words = _only(folder, ".pkl") if tensors.is_file() else folder
    for path in (tensors, words):
        if not path.is_file():
            raise InputError(f"there is no weights file {path}")
    return tensors, words


def _only(folder: Path, suffix: str) -> Path:
    found = sorted(folder.glob(f"*{suffix}"))
    if len(found) != 1:
        raise InputError(
            f"the folder {folder} must have one {suffix} file, or `weights` must name "
            f"both files: it has {len(found)}"
        )
    return found[0]


def _read_state(path: Path) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            # Of an unusual pickle: it is read or refused, as any other.
            warnings.simplefilter("ignore")
            state = torch.load(path, map_location="cpu", weights_only=True)
    except _DAMAGE as error:
        raise InputError(
            f"{path} cannot be read as torch weights: it is damaged, or holds more "
            "than tensors"
        ) from error
    if not isinstance(state, dict):
        raise InputError(f"{path} holds a {type(state).__name__}, not named tensors")
    return state


class _PlainUnpickler(pickle.Unpickler):
    """Reads lists, strings and numbers only."""

    def find_class(self, module_name: str, global_name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"{module_name}.{global_name} is not allowed")


def _read_words(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            words = _PlainUnpickler(file).load()
    except _DAMAGE as error:
        raise InputError(
            f"{path} cannot be read as a list of words: it is damaged, or holds more "
            "than strings"
        ) from error
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f"{path} must hold a list of strings")
    return words
