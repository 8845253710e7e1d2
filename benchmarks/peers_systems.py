"""The systems that `peers.py` compares, behind one face.

A system's library is imported by `load`, so that a process holds no other's.
"""
# ruff: noqa: D102 (the methods are those of `System`)

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import NDArray

PAPER_ITERATIONS = 600


@dataclass(frozen=True)
class Settings:
    """What the systems are told."""

    components: int = 100
    threads: int = 2
    paper_passes: int = 3
    ctm_iterations: int = 300


class System:
    """One way to embed documents: `prepare` is not timed, `fit` and `embed` are."""

    library: ClassVar[str]
    embeds: ClassVar[bool] = True

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def load(self) -> None:
        """Import the library."""
        self.module: Any = import_module(self.library)

    def prepare(self, counts: sp.csr_matrix) -> Any:
        """Bring counts into the form that the library wants."""
        return counts

    def fit(self, documents: Any) -> None:
        """Train."""
        raise NotImplementedError

    def embed(self, documents: Any) -> NDArray[Any]:
        """Embed documents as new ones."""
        raise NotImplementedError

    def embed_training(self, documents: Any) -> NDArray[Any]:
        """Embed the training documents, for the classifier: as new ones too."""
        return self.embed(documents)

    def perplexity(self, counts: sp.csr_matrix) -> dict[str, Any] | None:
        """Bound on the perplexity of the documents that were embedded last."""
        del counts
        return None

    def facts(self) -> dict[str, Any]:
        """Say how the system was set, and what else its row must hold."""
        raise NotImplementedError

    def close(self) -> None:
        """End what was started."""


class DocsigmaFast(System):
    """The Bayesian SMM as a user has it."""

    library = "docsigma"
    solver: ClassVar[str] = "fast"

    def load(self) -> None:
        super().load()
        import_module("torch").set_num_threads(self.settings.threads)

    def fit(self, documents: Any) -> None:
        self.model = self.module.BayesianSMM(
            self.settings.components,
            solver=self.solver,
            device="cpu",
            random_state=0,
            **self.options(),
        )
        self.model.fit(documents)

    def options(self) -> dict[str, Any]:
        """Give what is not a default."""
        return {}

    def embed(self, documents: Any) -> NDArray[Any]:
        self.posterior = self.model.posterior(documents)
        return np.asarray(self.posterior.mean)

    def perplexity(self, counts: sp.csr_matrix) -> dict[str, Any] | None:
        found = self.model.perplexity(counts, posterior=self.posterior)
        return {
            "corpus": found.corpus,
            "per_document": found.per_document,
            "standard_error": found.standard_error,
            "note": f"bound, {found.n_draws} draws",
        }

    def facts(self) -> dict[str, Any]:
        return {
            "settings": f'solver="{self.solver}", defaults',
            "passes": self.model.n_iter_,
        }


class DocsigmaLoose(DocsigmaFast):
    """The same, new documents being left sooner: within 1 % of the perplexity."""

    def options(self) -> dict[str, Any]:
        return {"inference_tol": 0.15}

    def facts(self) -> dict[str, Any]:
        settings = 'solver="fast", inference_tol=0.15'
        return super().facts() | {"settings": settings}


class DocsigmaPaper(DocsigmaFast):
    """Algorithm 1 of the paper: a few passes are timed, the rest follows."""

    solver = "paper"
    # T after a few passes says nothing of an embedding's speed or worth.
    embeds = False

    def options(self) -> dict[str, Any]:
        return {"max_iter": self.settings.paper_passes, "tol": 0}

    def facts(self) -> dict[str, Any]:
        clock = [row["seconds"] for row in self.model.history_]
        a_pass = float(np.median(np.diff(clock, prepend=0.0)))
        return {
            "settings": f'solver="paper", {PAPER_ITERATIONS} iterations',
            "passes": PAPER_ITERATIONS,
            "fit_seconds": PAPER_ITERATIONS * a_pass,
            "seconds_a_pass": a_pass,
            "measured_passes": len(clock),
            "note": (
                f"fit seconds extrapolated to {PAPER_ITERATIONS} iterations from "
                f"{len(clock)} measured; embeds with the code of docsigma fast"
            ),
        }


class SklearnLDA(System):
    """Online variational LDA of scikit-learn."""

    library = "sklearn.decomposition"
    passes: ClassVar[int] = 10

    @property
    def jobs(self) -> int:
        """Processes."""
        return self.settings.threads

    def prepare(self, counts: sp.csr_matrix) -> Any:
        # What it makes of the whole numbers of a CountVectorizer.
        return counts.astype(np.float64)

    def fit(self, documents: Any) -> None:
        self.model = self.module.LatentDirichletAllocation(
            self.settings.components,
            learning_method="online",
            max_iter=self.passes,
            n_jobs=self.jobs,
            random_state=0,
        )
        with self._one_thread_a_job():
            self.model.fit(documents)

    def embed(self, documents: Any) -> NDArray[Any]:
        with self._one_thread_a_job():
            return np.asarray(self.model.transform(documents))

    @staticmethod
    def _one_thread_a_job() -> Any:
        # The jobs are processes: with the threads of the environment as well, they
        # would be twice as many as the cores they are given.
        # And without files in shared memory: topics of 45 MB for each of a thousand
        # batches, kept to the end of the fit, fill the machine.
        return import_module("joblib").parallel_config(
            backend="loky", inner_max_num_threads=1, max_nbytes=None
        )

    def perplexity(self, counts: sp.csr_matrix) -> dict[str, Any] | None:
        counts = counts.astype(np.float64)
        tokens = float(counts.sum())
        whole = self.model.score(counts)
        # A document of no words has no term of its own: what remains is the term of
        # the topics, which scikit-learn charges to whatever documents it is given.
        topics = self.model.score(counts[:1] * 0.0)
        return {
            "corpus": float(np.exp(-(whole - topics) / tokens)),
            "per_document": None,
            "as_the_library_says": float(np.exp(-whole / tokens)),
            "note": (
                "variational bound of the documents alone; scikit-learn's own "
                "perplexity adds the divergence of the topics from their prior"
            ),
        }

    def facts(self) -> dict[str, Any]:
        return {
            "settings": (
                f"online, {self.passes} passes, batches of {self.model.batch_size}, "
                f"{self.jobs} job{'s' * (self.jobs > 1)}"
            ),
            "passes": self.passes,
        }

    def close(self) -> None:
        # Processes that are not waited for would pass for other work.
        import_module("joblib.externals.loky").get_reusable_executor().shutdown()


class SklearnSerialLDA(SklearnLDA):
    """The same in one process: with small batches, jobs cost more than they give."""

    @property
    def jobs(self) -> int:
        return 1

    def close(self) -> None:
        pass


class LSA(System):
    """TF-IDF and a truncated singular value decomposition."""

    library = "sklearn"

    def load(self) -> None:
        super().load()
        pipeline = import_module("sklearn.pipeline").make_pipeline
        text = import_module("sklearn.feature_extraction.text")
        decomposition = import_module("sklearn.decomposition")
        self.model = pipeline(
            text.TfidfTransformer(sublinear_tf=True),
            decomposition.TruncatedSVD(self.settings.components, random_state=0),
        )

    def fit(self, documents: Any) -> None:
        self.model.fit(documents)

    def embed(self, documents: Any) -> NDArray[Any]:
        return np.asarray(self.model.transform(documents))

    def facts(self) -> dict[str, Any]:
        return {"settings": "TF-IDF (sublinear), randomized SVD"}


class TokenSystem(System):
    """A system that wants the tokens themselves, here in vocabulary order."""

    def prepare(self, counts: sp.csr_matrix) -> list[list[str]]:
        words = np.array([f"w{column}" for column in range(counts.shape[1])], object)
        tokens = np.repeat(words[counts.indices], counts.data.astype(int))
        lengths = np.asarray(counts.sum(axis=1)).ravel().astype(int)
        return [part.tolist() for part in np.split(tokens, np.cumsum(lengths)[:-1])]


class TomotopyLDA(TokenSystem):
    """LDA by Gibbs sampling."""

    library = "tomotopy"
    kind: ClassVar[str] = "LDAModel"
    inference_iterations: ClassVar[int] = 100

    @property
    def iterations(self) -> int:
        """Iterations of the training."""
        return 300

    def fit(self, documents: Any) -> None:
        make = getattr(self.module, self.kind)
        self.model = make(k=self.settings.components, seed=1)
        for tokens in documents:
            if tokens:
                self.model.add_doc(tokens)
        self.model.train(self.iterations, workers=self.settings.threads)

    def embed(self, documents: Any) -> NDArray[Any]:
        # The library refuses a document of no words; nothing is known of its topics.
        proportions = np.full((len(documents), self.model.k), 1 / self.model.k)
        filled = [row for row, tokens in enumerate(documents) if tokens]
        made = [self.model.make_doc(documents[row]) for row in filled]
        proportions[filled], _ = self.model.infer(
            made,
            iterations=self.inference_iterations,
            workers=self.settings.threads,
        )
        return proportions

    def facts(self) -> dict[str, Any]:
        return {
            "settings": (
                f"{self.iterations} iterations, {self.inference_iterations} to embed"
            ),
            "passes": self.iterations,
        }


class TomotopyCTM(TomotopyLDA):
    """The correlated topic model by Gibbs sampling."""

    kind = "CTModel"

    @property
    def iterations(self) -> int:
        return self.settings.ctm_iterations

    def facts(self) -> dict[str, Any]:
        if self.iterations == TomotopyLDA(self.settings).iterations:
            return super().facts()
        return super().facts() | {
            "note": f"{self.iterations} iterations only, to bound the time"
        }


class ParagraphVectors(TokenSystem):
    """Doc2Vec of gensim, PV-DBOW: the order of the tokens plays no part."""

    library = "gensim.models.doc2vec"
    epochs: ClassVar[int] = 20

    def prepare(self, counts: sp.csr_matrix) -> Any:
        tagged = self.module.TaggedDocument
        return [
            tagged(words, [row]) for row, words in enumerate(super().prepare(counts))
        ]

    def fit(self, documents: Any) -> None:
        self.model = self.module.Doc2Vec(
            documents,
            dm=0,
            vector_size=self.settings.components,
            epochs=self.epochs,
            min_count=1,
            workers=self.settings.threads,
            seed=1,
        )

    def embed(self, documents: Any) -> NDArray[Any]:
        # The library embeds one at a time; its loops leave the interpreter's lock.
        with ThreadPoolExecutor(self.settings.threads) as pool:
            vectors = pool.map(self.model.infer_vector, (d.words for d in documents))
            return np.stack(list(vectors))

    def facts(self) -> dict[str, Any]:
        return {
            "settings": f"PV-DBOW, {self.epochs} epochs, {self.epochs} to embed",
            "passes": self.epochs,
        }


class OwnParagraphVectors(ParagraphVectors):
    """The same, the classifier learning from the vectors that training left."""

    def embed_training(self, documents: Any) -> NDArray[Any]:
        return np.asarray(self.model.dv.vectors[: len(documents)])

    def facts(self) -> dict[str, Any]:
        facts = super().facts()
        return facts | {"settings": f"{facts['settings']}; LR on its own vectors"}


SYSTEMS: dict[str, type[System]] = {
    "fast": DocsigmaFast,
    "fast-loose": DocsigmaLoose,
    "paper": DocsigmaPaper,
    "lda": SklearnLDA,
    "lda-one-job": SklearnSerialLDA,
    "tomotopy-lda": TomotopyLDA,
    "tomotopy-ctm": TomotopyCTM,
    "pv-dbow": ParagraphVectors,
    "pv-dbow-own": OwnParagraphVectors,
    "lsa": LSA,
}
