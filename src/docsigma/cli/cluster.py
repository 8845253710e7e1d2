"""`docsigma cluster`: groups of documents, as many as there are."""

from __future__ import annotations

import sys

from docsigma.cli import _common
from docsigma.cli._tables import TableFile, check_table, text_column, write_table


@_common.with_options()
def cluster(
    clf: _common.ClassifierFolder,
    docs: _common.DocumentsArgument,
    out: TableFile,
    *,
    reader: _common.DocumentOptions,
    no_text: _common.NoText = False,
    force: _common.Force = False,
    as_json: _common.JsonFlag = False,
) -> None:
    """Group similar documents; the number of groups is found.

    A classifier (hybrid or evidence) has learned how far apart documents of one class
    lie; the groups need not be its classes. A row holds row (in the file, as a
    spreadsheet counts), id, group (0 is the largest, -1 stands for documents with no
    known word), label (if known) and text.

    Example: docsigma cluster classifier tickets.csv --out groups.csv
    """
    import numpy as np

    from docsigma.classifiers.counts_classifier import CountsClassifier
    from docsigma.groups.by_evidence import group_by_evidence
    from docsigma.search.documents import evidence_of

    check_table(out, clf, docs, force=force)
    classifier = CountsClassifier.load(clf)
    evidence = evidence_of(classifier)
    assert evidence is not None
    source = reader.count(docs, classifier.model_)
    posterior = classifier.model_.posterior(source.counts)
    groups = group_by_evidence(evidence, posterior, verbose=sys.stderr.isatty())
    every = slice(None)
    columns = source.named(every) | {"group": groups.astype(np.int64)}
    labels = source.labels(every)
    if labels is not None:
        columns["label"] = list(labels)
    columns |= text_column(out, source, every, no_text)
    write_table(out, [(columns, {})])
    sizes = np.bincount(groups[groups >= 0])
    report = {
        "file": str(out),
        "n_documents": len(groups),
        "n_groups": int((sizes > 0).sum()),
        "n_empty": int((groups < 0).sum()),
        "sizes": sizes[sizes > 0].tolist(),
    }
    rows = {
        "documents": len(groups),
        "groups": report["n_groups"],
        "of ten documents or more": int((sizes >= 10).sum()),
        "largest group": int(sizes.max(initial=0)),
        "documents with no known word": report["n_empty"],
    }
    _common.print_report(report, as_json, f"{docs} -> {out}", rows)
