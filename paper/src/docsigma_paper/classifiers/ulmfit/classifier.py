"""ULMFiT as a scikit-learn classifier of texts."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from docsigma._devices import choose_device
from docsigma.classifiers._labels import TrainingLabels
from docsigma.exceptions import InputError
from docsigma_paper.classifiers.ulmfit.batches import TokenDocuments
from docsigma_paper.classifiers.ulmfit.fine_tuning import class_log_probabilities
from docsigma_paper.classifiers.ulmfit.history import TrainingLog
from docsigma_paper.classifiers.ulmfit.phases import (
    Reading,
    describe_pretraining,
    make_language_model,
    make_network,
)
from docsigma_paper.classifiers.ulmfit.tokens import check_texts, tokenize
from docsigma_paper.classifiers.ulmfit.weights import write_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from docsigma_paper.classifiers.ulmfit.language_model import LanguageModel
    from docsigma_paper.classifiers.ulmfit.network import DocumentNetwork
    from docsigma_paper.classifiers.ulmfit.tokens import WordVocabulary
    from docsigma_paper.classifiers.ulmfit.weights import Location, WeightsPath


_COUNT = Interval(Integral, 1, None, closed="left")
_EPOCHS = Interval(Integral, 0, None, closed="left")
_RATE = Interval(Real, 0, None, closed="neither")
# The weights' rate is 1.25 times as high, and must stay below 1.
_DROPOUT = Interval(Real, 0, 0.8, closed="left")


class ULMFiTClassifier(ClassifierMixin, BaseEstimator):
    """Universal language model fine-tuned for classification (ULMFiT).

    A language model of words, an AWD-LSTM, is pre-trained; it is fine-tuned on the
    texts at hand; and its hidden units, pooled over a document, are classified by two
    linear blocks, which learn first alone and then with one more layer an epoch. A
    layer learns 2.6 times as fast as the one below it, and rates follow a slanted
    triangle.

    Parameters
    ----------
    weights : path, pair of paths or None, default=None
        Published weights of a language model, as fastai 1 stores its model of
        WikiText-103: a folder with one ``.pth`` and one ``.pkl`` file, or these two
        files. None means that the model is pre-trained on the texts that `fit` gets.
    embedding_size : int, default=400
        Size of a word vector, and width of the last layer.
    hidden_units : int, default=1152
        Width of the other layers.
    n_layers : int, default=3
        LSTM layers.
    max_words : int, default=60000
        Most words of the vocabulary.
    min_count : int, default=2
        A word that occurs less often is unknown.
    pretrain_epochs : int, default=20
        Passes over the texts of the pre-training, where there are no `weights`.
    lm_epochs : int, default=15
        Passes of fine-tuning the language model; 0 means none.
    classifier_epochs : int, default=50
        Passes of training the classifier. The layers learn all together only after
        ``n_layers + 1`` passes.
    lm_dropout, classifier_dropout : float, default=0.4
        Dropout of the last layer's output. The other rates keep their proportion to
        it: 0.4 is the choice of Howard and Ruder, 0 none. Below 0.8.
    pretrain_learning_rate, lm_learning_rate : float, default=0.004
        Highest learning rates of the language model.
    classifier_learning_rate : float, default=0.01
        Highest learning rate of the linear blocks.
    batch_size : int, default=64
        Columns of text, or documents, in a batch.
    bptt : int, default=70
        Words that a gradient goes back in the language model.
    max_tokens : int, default=1400
        Words from the end of a document that a gradient goes back in the classifier.
        Longer documents are read whole.
    max_length : int or None, default=None
        Words that are read of a document, from its beginning; None means all. A few
        documents of attached files can take longer than all the rest.
    device : str, default="auto"
        ``"cpu"``, ``"cuda"``, any torch device with float64, or ``"auto"``: the GPU
        if there is one.
    random_state : int, RandomState instance or None, default=None
        Decides the start, the order and all dropout; an int gives the same result
        each time on a CPU.
    verbose : bool, default=False
        Whether a progress bar is shown.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes.
    pretrained_on_ : str
        What the language model was pre-trained on, in words.
    vocabulary_ : WordVocabulary
        The words that are known.
    language_model_ : LanguageModel
        After its fine-tuning.
    network_ : DocumentNetwork
        The classifier.
    history_ : list of dict
        ``phase``, ``epoch``, mean cross-entropy ``loss`` in nats (a word or a
        document, with dropout) and ``seconds`` of each epoch.

    References
    ----------
    J. Howard, S. Ruder: Universal language model fine-tuning for text
    classification. ACL 2018.

    S. Merity, N. S. Keskar, R. Socher: Regularizing and optimizing LSTM language
    models. ICLR 2018.

    Examples
    --------
    >>> texts = ["sun and warm wind", "warm sun", "goal and ball", "ball and goal"] * 4
    >>> labels = ["weather", "weather", "sport", "sport"] * 4
    >>> ulmfit = ULMFiTClassifier(
    ...     embedding_size=16, hidden_units=16, n_layers=1, pretrain_epochs=1,
    ...     lm_epochs=1, classifier_epochs=15, batch_size=4, device="cpu",
    ...     random_state=0)
    >>> ulmfit.fit(texts, labels).predict(["warm sun", "goal and ball"])
    array(['weather', 'sport'], dtype='<U7')
    >>> ulmfit.pretrained_on_
    'the 16 texts of the training set'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "weights": [str, os.PathLike, tuple, None],
        "embedding_size": [_COUNT],
        "hidden_units": [_COUNT],
        "n_layers": [_COUNT],
        "max_words": [_COUNT],
        "min_count": [_COUNT],
        "pretrain_epochs": [_EPOCHS],
        "lm_epochs": [_EPOCHS],
        "classifier_epochs": [_COUNT],
        "lm_dropout": [_DROPOUT],
        "classifier_dropout": [_DROPOUT],
        "pretrain_learning_rate": [_RATE],
        "lm_learning_rate": [_RATE],
        "classifier_learning_rate": [_RATE],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "bptt": [_COUNT],
        "max_tokens": [_COUNT],
        "max_length": [_COUNT, None],
        "device": [str],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    classes_: NDArray[Any]
    pretrained_on_: str
    vocabulary_: WordVocabulary
    language_model_: LanguageModel
    network_: DocumentNetwork
    history_: list[dict[str, Any]]

    def __init__(
        self,
        weights: WeightsPath | None = None,
        *,
        embedding_size: int = 400,
        hidden_units: int = 1152,
        n_layers: int = 3,
        max_words: int = 60_000,
        min_count: int = 2,
        pretrain_epochs: int = 20,
        lm_epochs: int = 15,
        classifier_epochs: int = 50,
        lm_dropout: float = 0.4,
        classifier_dropout: float = 0.4,
        pretrain_learning_rate: float = 0.004,
        lm_learning_rate: float = 0.004,
        classifier_learning_rate: float = 0.01,
        batch_size: int = 64,
        bptt: int = 70,
        max_tokens: int = 1400,
        max_length: int | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.weights = weights
        self.embedding_size = embedding_size
        self.hidden_units = hidden_units
        self.n_layers = n_layers
        self.max_words = max_words
        self.min_count = min_count
        self.pretrain_epochs = pretrain_epochs
        self.lm_epochs = lm_epochs
        self.classifier_epochs = classifier_epochs
        self.lm_dropout = lm_dropout
        self.classifier_dropout = classifier_dropout
        self.pretrain_learning_rate = pretrain_learning_rate
        self.lm_learning_rate = lm_learning_rate
        self.classifier_learning_rate = classifier_learning_rate
        self.batch_size = batch_size
        self.bptt = bptt
        self.max_tokens = max_tokens
        self.max_length = max_length
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, *, extra_texts: Any = None) -> Self:
        """Train the language model and the classifier.

        Parameters
        ----------
        X : list of str
            Texts.
        y : array-like of shape (n_texts,)
            Labels: strings or integers.
        extra_texts : list of str, optional
            Texts without labels, for the language model: they join `X` in its
            pre-training and fine-tuning.

        Returns
        -------
        self
            The trained classifier.
        """
        texts = check_texts(X, "X")
        extra = check_texts(() if extra_texts is None else extra_texts, "extra_texts")
        labels = TrainingLabels.check(y, len(texts))
        reading = Reading.begin(self, [*texts, *extra])
        n_epochs = reading.n_pretrain + self.lm_epochs + self.classifier_epochs
        with TrainingLog(n_epochs, show=bool(self.verbose)) as log:
            model = make_language_model(self, reading, log)
            network = make_network(self, model, reading, labels, log)
        self._keep(model, reading, log, len(texts))
        self.classes_ = labels.classes
        self.network_ = network
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_language_model(self, X: Any) -> Self:
        """Train the language model alone, to be saved and used as `weights`.

        Parameters
        ----------
        X : list of str
            Texts, which need no labels.

        Returns
        -------
        self
            Cannot predict: it has no classifier.
        """
        texts = check_texts(X, "X")
        if not texts:
            raise InputError("`X` has 0 texts, a language model needs at least 1")
        reading = Reading.begin(self, texts)
        n_epochs = reading.n_pretrain + self.lm_epochs
        with TrainingLog(n_epochs, show=bool(self.verbose)) as log:
            model = make_language_model(self, reading, log)
        for name in ("classes_", "network_"):
            self.__dict__.pop(name, None)
        self._keep(model, reading, log, 0)
        return self

    def _keep(
        self, model: LanguageModel, reading: Reading, log: TrainingLog, n_labelled: int
    ) -> None:
        self.vocabulary_ = reading.vocabulary
        self.language_model_ = model
        self.history_ = log.rows
        self.pretrained_on_ = describe_pretraining(reading, n_labelled)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Log probabilities of the classes.

        Parameters
        ----------
        X : list of str
            Texts.

        Returns
        -------
        ndarray of shape (n_texts, n_classes)
            Columns in the order of ``classes_``.
        """
        check_is_fitted(self, "network_")
        texts = check_texts(X, "X")
        if not texts:
            return np.empty((0, len(self.classes_)))
        device = choose_device(self.device)
        tokens = (tokenize(text)[: self.max_length] for text in texts)
        numbers = [self.vocabulary_.encode(document) for document in tokens]
        documents = TokenDocuments.build(numbers, device)
        # Kept on the CPU in between: a pickle then opens where there is no GPU.
        network = self.network_.to(device)
        try:
            return class_log_probabilities(network, documents, self.batch_size)
        finally:
            network.cpu()

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes, which add up to 1; see `predict_log_proba`."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of each text, named as in `fit`."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def save_language_model(self, folder: Location) -> None:
        """Write the fine-tuned language model, to be used as `weights`.

        With ``lm_epochs=0`` another classifier then starts where this one's did.

        Parameters
        ----------
        folder : path
            Gets two files in fastai's layout.
        """
        check_is_fitted(self, "language_model_")
        words = self.vocabulary_.words
        write_weights(folder, self.language_model_, words, self.pretrained_on_)
