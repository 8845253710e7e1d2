"""`docsigma calibration`: whether the variances of embeddings are right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from docsigma.cli import _common
from docsigma.cli._common import number, option


@_common.with_options()
def calibration(
    model: Annotated[
        Path, typer.Argument(help="Folder made by `fit` or `classifier fit`.")
    ],
    docs: _common.DocumentsArgument,
    *,
    plot: Annotated[Path | None, option("Image to draw (.png, .svg).", "none")] = None,
    reader: _common.DocumentOptions,
    device: _common.Device = None,
    as_json: _common.JsonFlag = False,
) -> None:
    """Test the variances of a model on parts of documents, without labels.

    Each document is embedded whole and in part. The ratio is 1 if the variances of the
    parts are right, and above 1 if they are too small. DOCS should not be the training
    documents. Counts have no order, so they have no first words.

    Example: docsigma calibration model new.csv --plot calibration.png
    """
    from docsigma.classifiers.counts_classifier import FOLDER_KIND, CountsClassifier
    from docsigma.metrics.plots import check_image, save_figures
    from docsigma.persistence import read_model

    if plot is not None:
        check_image(plot)
        _common.check_writable(plot, force=True)
    stored = read_model(model)
    if stored.kind == FOLDER_KIND:
        classifier = CountsClassifier.load(model)
        smm = _common.in_language(classifier, reader.language).model_
        if device is not None:
            smm.set_params(device=device)
    else:
        smm = _common.load_model(model, device, reader.language)
    source = reader.count(docs, smm)
    texts = None if source.texts is None else source.texts(slice(None))
    found = smm.calibration(source.counts, texts=texts)
    if plot is not None:
        save_figures({plot.name: found.plot()}, plot.parent)
    if as_json:
        _common.print_json(found.to_dict())
        return
    title = f"Variances of {docs} ({number(found.n_documents, 0)} documents)"
    lines = _common.table(
        title, "part", ">documents", ">ratio", ">90 %", ">90 % of dimensions"
    )
    for row in found.rows():
        lines.add_row(*row)
    _common.show(lines, "Above 1: too sure. Below 1: not sure enough.")
