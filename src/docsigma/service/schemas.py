"""Schemas of requests and answers."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

# pydantic reads the types when the classes are created.
from docsigma.models.components import Dimension  # noqa: TC001
from docsigma.search import Match  # noqa: TC001


class Texts(BaseModel):
    """Documents."""

    model_config = ConfigDict(extra="forbid", strict=True)
    texts: list[str] = Field(
        description="The documents, one string each.",
        examples=[["The router restarts and the line is dead."]],
    )


class SearchRequest(Texts):
    """Queries."""

    n: int = Field(10, ge=1, le=1000, description="Documents per query.")
    labels: list[str] | None = Field(None, description="Only these labels.")
    max_total_variance: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Largest variance to include."
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
    """The label of a document, with its uncertainty."""

    label: str
    probability: float
    second: str = Field(description="The label that is second best.")
    second_probability: float
    entropy: float
    n_tokens: int
    prediction_set: list[str] | None = Field(
        default=None,
        description="Labels that may be right, at 90 %; of a calibrated classifier.",
    )
    unknown_p_value: float | None = Field(
        default=None,
        description="Low for a text of none of the labels; of a calibrated classifier.",
    )
    probabilities: dict[str, float] = Field(description="Of all labels.")


class Classifications(BaseModel):
    """Labels of documents."""

    documents: list[Classification]


class Matches(BaseModel):
    """Documents found for each query."""

    metric: str
    n_known: list[int] = Field(
        description="Known words of each query: one with none is like nothing here."
    )
    matches: list[list[Match]]


class Topics(BaseModel):
    """Words of the model's components, the largest component first."""

    dimensions: list[Dimension]


class State(BaseModel):
    """State of the server."""

    status: str


class Problem(BaseModel):
    """Reason of a refusal, in one sentence."""

    detail: str
