"""The figures that the paper prints (Kesiraju et al., 2020)."""

from __future__ import annotations

__all__ = ["CITED", "FISHER", "NEWSGROUPS", "PERPLEXITY"]

# Table 2: model, K -> perplexity of the corpus and per document, by vocabulary.
PERPLEXITY: dict[tuple[str, str, int], tuple[int, int]] = {
    ("20newsgroups", "NVDM", 50): (1287, 1421),
    ("20newsgroups", "NVDM", 200): (1387, 1519),
    ("20newsgroups", "Bayesian SMM", 50): (1043, 1064),
    ("20newsgroups", "Bayesian SMM", 200): (882, 851),
    ("20newsgroups", "ML estimate", 0): (153, 93),
    ("20newsgroups-2k", "NVDM", 50): (769, 820),
    ("20newsgroups-2k", "NVDM", 200): (852, 870),
    ("20newsgroups-2k", "Bayesian SMM", 50): (629, 639),
    ("20newsgroups-2k", "Bayesian SMM", 200): (519, 515),
    ("20newsgroups-2k", "ML estimate", 0): (90, 42),
}

# Table 4: model, classifier -> accuracy in per cent and cross-entropy.
NEWSGROUPS: dict[tuple[str, str], tuple[float, float]] = {
    ("TF-IDF", "LR"): (84.47, 0.73),
    ("ULMFiT", "MLP"): (83.06, 0.89),
    ("l1 SMM", "LR"): (82.01, 0.75),
    ("l1 SMM", "GLC"): (82.02, 1.33),
    ("NVDM", "LR"): (79.57, 0.86),
    ("NVDM", "GLC"): (77.60, 1.65),
    ("NVDM", "GLCU"): (76.86, 0.88),
    ("Bayesian SMM", "LR"): (84.65, 0.53),
    ("Bayesian SMM", "GLC"): (83.22, 1.28),
    ("Bayesian SMM", "GLCU"): (82.81, 0.79),
}

# Table 3, manual and automatic transcripts of Fisher.
FISHER: dict[tuple[str, str, str], tuple[float, float]] = {
    ("manual", "TF-IDF", "LR"): (86.59, 0.93),
    ("manual", "ULMFiT", "MLP"): (86.41, 0.50),
    ("manual", "l1 SMM", "LR"): (86.81, 0.91),
    ("manual", "l1 SMM", "GLC"): (85.17, 1.64),
    ("manual", "NVDM", "LR"): (81.16, 0.94),
    ("manual", "NVDM", "GLC"): (84.47, 1.25),
    ("manual", "NVDM", "GLCU"): (83.96, 0.93),
    ("manual", "Bayesian SMM", "LR"): (89.91, 0.89),
    ("manual", "Bayesian SMM", "GLC"): (89.47, 1.05),
    ("manual", "Bayesian SMM", "GLCU"): (89.54, 0.68),
    ("automatic", "TF-IDF", "LR"): (86.77, 0.94),
    ("automatic", "ULMFiT", "MLP"): (86.08, 0.50),
    ("automatic", "l1 SMM", "LR"): (87.02, 1.09),
    ("automatic", "l1 SMM", "GLC"): (85.53, 1.54),
    ("automatic", "NVDM", "LR"): (83.67, 1.15),
    ("automatic", "NVDM", "GLC"): (84.15, 1.22),
    ("automatic", "NVDM", "GLCU"): (83.01, 0.97),
    ("automatic", "Bayesian SMM", "LR"): (88.23, 0.95),
    ("automatic", "Bayesian SMM", "GLC"): (87.23, 1.46),
    ("automatic", "Bayesian SMM", "GLCU"): (87.54, 0.77),
}

# Rows that the paper itself only cites: corpus, model, classifier, accuracy.
CITED: tuple[tuple[str, str, str, float], ...] = (
    ("20newsgroups", "CNN (Pappagari et al., 2018)", "-", 86.12),
    ("20newsgroups", "SCDV (Mekala et al., 2017)", "SVM", 84.60),
    ("20newsgroups", "NTSG-1 (Liu et al., 2015)", "SVM", 82.60),
    ("fisher", "BoW (Hazen et al., 2007)", "NB", 87.61),
    ("fisher", "TF-IDF (May et al., 2015)", "LR", 86.41),
)
