"""Settings of a fit: flags over a TOML file over defaults."""

from __future__ import annotations

import inspect
import json
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from docsigma.exceptions import InputError

# Names of the command line where they differ from the estimator's.
ALIASES = {"components": "n_components", "draws": "n_draws", "seed": "random_state"}
COUNTING = {"min_df", "max_df", "max_features", "lowercase", "stop_words"}
COUNTING |= {"token_pattern", "ngram_range", "strip_accents", "tokenizer"}


@dataclass(frozen=True)
class Settings:
    """Parameters of the estimator, and settings of the vocabulary."""

    model: dict[str, Any]
    counting: dict[str, Any]


def _from_file(path: Path) -> dict[str, Any]:
    """Return the settings in a TOML file, or in the .json that `tune` wrote."""
    try:
        text = path.read_text("utf-8")
        if path.suffix != ".json":
            return tomllib.loads(text)
        report = json.loads(text)
        return {**report["parameters"], "solver": report["solver"]}
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = f"a TOML file: {error}"
        if path.suffix == ".json":
            why = "a file of `docsigma tune`: settings in .json need its `parameters` "
            why += "and `solver`; others are .toml"
        raise InputError(f"{path} is not {why}") from error


def read_settings(flags: dict[str, Any], config: Path | None) -> Settings:
    """Merge flags and a file of settings; a flag that is None was not given."""
    from docsigma.models import BayesianSMM

    known = set(inspect.signature(BayesianSMM).parameters)
    values = {} if config is None else _from_file(config)
    values = {ALIASES.get(k, k).replace("-", "_"): v for k, v in values.items()}
    for name in (k for k in values if k not in known | COUNTING):
        hint = "use options of `docsigma fit` or parameters of BayesianSMM"
        if alike := get_close_matches(name, known | COUNTING | set(ALIASES), 1):
            hint = f"did you mean {alike[0]!r}?"
        raise InputError(f"{config} has an unknown key {name!r}: {hint}")
    given = {k: v for k, v in flags.items() if v is not None}
    values |= {ALIASES.get(name, name): value for name, value in given.items()}
    if "ngram_range" in values:
        values["ngram_range"] = tuple(values["ngram_range"])
    return Settings(
        model={k: v for k, v in values.items() if k in known},
        counting={k: v for k, v in values.items() if k in COUNTING},
    )
