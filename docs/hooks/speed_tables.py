"""Tables of speed and memory, for :mod:`tables`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from table_parts import Columns, Reports, cells, table, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable


def _peers(reports: Reports) -> str:
    parts = []
    # The run of most systems first, whose file has the shortest name.
    for _, report in sorted(reports, key=lambda item: len(item[0].stem)):
        measured = [row for row in report["systems"] if row["status"] == "measured"]
        missing = [row for row in report["systems"] if row["status"] != "measured"]
        corpus = report["corpus"]
        parts.append(
            f"`{corpus['name']}`: {corpus['n_train']} documents to train on, "
            f"{corpus['n_test']} to embed, {corpus['n_features']} words, "
            f"K {report['n_components']}."
        )
        parts += [cells(columns, measured) for columns in (PEER_SPEED, PEER_QUALITY)]
        notes = [(row, note) for row in measured for note in _peer_notes(row)]
        notes += [(row, f"{row['status']}, {row['reason']}") for row in missing]
        parts.append("\n".join(f"- {row['system']}: {note}." for row, note in notes))
        parts.append(_made_by(report))
    return "\n\n".join(part for part in parts if part)


PEER_SPEED: Columns = {
    "system": ("system", ""),
    ">fit, s": ("fit_seconds", ".1f"),
    ">x fast": ("ratios.fit", ".2f"),
    ">embed, documents/s": ("embed_documents_per_second", ".0f"),
    "> x fast": ("ratios.embed", ".2f"),
    ">peak, GiB": ("peak_gib", ".2f"),
    ">  x fast": ("ratios.memory", ".2f"),
    ">work, GiB": ("work_gib", ".2f"),
}
PEER_QUALITY: Columns = {
    "system": ("system", ""),
    "settings": ("settings", ""),
    ">perplexity": ("perplexity.corpus", ".0f"),
    ">per document": ("perplexity.per_document", ".0f"),
    ">LR, %": ("accuracy", ".1f"),
    ">LR, nats": ("cross_entropy", ".2f"),
}


def _peer_notes(row: dict[str, Any]) -> list[str]:
    notes = [row["note"]] if "note" in row else []
    bound = row.get("perplexity")
    if bound:
        notes.append(f"perplexity: {bound['note']}")
    busy = row.get("others_busy_cores") or 0.0
    if busy > BUSY:
        notes.append(
            f"other work kept {busy:.1f} cores busy meanwhile: its times are too long"
        )
    return notes


# Cores; the kernel and the machine's own services take less.
BUSY = 0.3


def _made_by(report: dict[str, Any]) -> str:
    """Tell the machine, the versions and the command of a run."""
    machine = report["machine"]
    versions = ", ".join(
        f"{name} {version}" for name, version in report["versions"].items() if version
    )
    return (
        f"Run on {report['date'][:10]}: {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_gib']:.0f} GiB; {report['threads']} threads. {versions}.\n\n"
        f"```bash\n{wrapped(report['command'])}\n```"
    )


SIZES = {
    "n_documents": "documents",
    "n_features": "words",
    "n_components": "components",
    "n_tokens": "tokens a document",
}


def _growth(reports: Reports) -> str:
    parts = []
    for _, report in reports:
        rows = []
        for name, found in report["axes"].items():
            for row in found["rows"]:
                rows.append(
                    f"{SIZES[name]}|{row['size']}|{1000 * row['seconds_a_pass']:.1f}||"
                    f"{row['embed_documents_per_second']:.0f}|"
                )
            rows.append(
                f"**{SIZES[name]}**|**time ~ size^b**||**{found['pass_exponent']:.2f}**"
                f"||**{found['embed_exponent']:.2f}**"
            )
        base = ", ".join(f"{n} {SIZES[name]}" for name, n in report["base"].items())
        title = f'Solver `"{report["solver"]}"` about the base point {base}.'
        head = "size that varies|>size|>a pass, ms|>b|>embed, documents/s|>b"
        parts += [title, table(head, rows), _made_by(report)]
        busy = report.get("others_busy_cores") or 0.0
        if busy > BUSY:
            parts.append(f"Other work kept {busy:.1f} cores busy: run it again.")
    return "\n\n".join(parts)


GPU: Columns = {
    "variant": ("variant", ""),
    ">n": ("n", ""),
    ">V": ("V", ""),
    ">K": ("K", ""),
    ">training, ms": ("training.ms", ".2f"),
    ">x floor": ("training.ratio", ".2f"),
    ">inference, ms": ("inference.ms", ".2f"),
    "> x floor": ("inference.ratio", ".2f"),
    ">largest error": ("error", ".0e"),
}


def _gpu(reports: Reports) -> str:
    parts = []
    for _, report in reports:
        rows = [
            row | {"error": max(row["errors"].values())} if row.get("errors") else row
            for row in report["rows"]
        ]
        parts += [f"{report['device']}, torch {report['torch']}.", cells(GPU, rows)]
    return "\n\n".join(parts)


def _big(reports: Reports) -> str:
    parts = []
    for _, report in reports:
        rows = []
        for step in ("make", "fit", "embed"):
            taken = [(row, row[step]) for row in report["rows"] if step in row]
            rows += [
                f"{step}|{row['n_documents']}|{row['bytes'] / 2**30:.2f}|"
                f"{found['seconds']:.1f}|{found['documents_per_second']:.0f}|"
                f"{found['peak_gib']:.2f}"
                for row, found in taken
            ]
            grown = report["growth"].get(step)
            if grown is not None:
                rows.append(
                    f"**{step}**|||**~ documents^{grown['exponent']:.2f}**||"
                    f"**{grown['peak_bytes_a_document']:+.0f} bytes a document**"
                )
        passes = f"{report['passes']} pass{'' if report['passes'] == 1 else 'es'}"
        parts.append(
            f"{report['n_features']} words, K {report['n_components']}, training of "
            f"{passes}."
        )
        head = "step|>documents|>on disk, GiB|>seconds|>documents/s|>peak, GiB"
        parts += [table(head, rows), _made_by(report)]
        steps = [row[step] for row in report["rows"] for step in ("fit", "embed")]
        busy = max((found["others_busy_cores"] or 0.0) for found in steps)
        if busy > BUSY:
            parts.append(f"Other work kept up to {busy:.1f} cores busy: run it again.")
    return "\n\n".join(parts)


def _fit(reports: Reports) -> str:
    parts = []
    for _, report in reports:
        rows = [
            f"{row['n_components']}|{row.get('solver', 'fast')}|"
            f"{row.get('precision', 'tf32')}|{row['n_iter']}|{row['fit_seconds']:.2f}|"
            f"{row['embed_documents_per_second']:.0f}|"
            f"{row['embed_many_documents_per_second']:.0f}|"
            f"{row['perplexity']:.1f} / {row['perplexity_per_document']:.1f}"
            for row in report["rows"]
        ]
        head = (
            ">K|solver|precision|>passes|>fit, s|>embedded, documents/s|"
            ">the same, 16 times as many|>perplexity"
        )
        parts += [f"{report['device']}, torch {report['torch']}.", table(head, rows)]
    return "\n\n".join(parts)


def _estep(reports: Reports) -> str:
    rows = [
        f"{row['corpus']}|{row['n_documents']}|{row['K']}|"
        f"{row['lower_at_most_percent']:.2f}|{row['mean_lower_percent']:.3f}|"
        f"{row['sweeps']:.1f}|{row['times_faster']:.0f}"
        for _, report in reports
        for row in report
    ]
    head = (
        "corpus|>documents|>K|>lower at most, %|>lower on average, %|"
        ">sweeps a document|>times as fast"
    )
    return table(head, rows)


SPEED_TABLES: dict[str, Callable[[Reports], str]] = {
    "fit": _fit,
    "estep": _estep,
    "peers": _peers,
    "growth": _growth,
    "gpu": _gpu,
    "big": _big,
}
