"""What requests and answers hold."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

# pydantic reads the types when the classes are made.
from docsigma.models.components import Dimension  # noqa: TC001
from docsigma.search import Match  # noqa: TC001


class Texts(BaseModel):
    """Documents."""

    model_config = ConfigDict(extra="forbid", strict=True)
    texts: list[str] = Field(description="The documents, one string each.")


class SearchRequest(Texts):
    """Queries."""

    n: int = Field(10, ge=1, le=1000, description="Documents per query.")
    labels: list[str] | None = Field(None, description="Only these labels.")
    max_total_variance: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Only documents this certain."
    )


class Embedding(BaseModel):
    """The Gaussian of a document."""

    mean: list[float]
    variance: list[float] | None = None
    total_variance: float | None = None
    n_tokens: int
    n_unknown: int


class Embeddings(BaseModel):
    """The Gaussians of documents, and the model that made them."""

    model: str
    documents: list[Embedding]


class Classification(BaseModel):
    """A document's label, and how sure it is."""

    label: str
    probability: float
    probabilities: dict[str, float]
    entropy: float
    epistemic: float
    n_tokens: int


class Classifications(BaseModel):
    """Labels of documents."""

    documents: list[Classification]


class Matches(BaseModel):
    """What was found for each query."""

    metric: str
    matches: list[list[Match]]


class Topics(BaseModel):
    """What the components of the model are about, the heaviest first."""

    dimensions: list[Dimension]


class State(BaseModel):
    """How the server is."""

    status: str


class Problem(BaseModel):
    """What is wrong, in one sentence."""

    detail: str
