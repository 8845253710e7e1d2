from __future__ import annotations

import shutil

import pytest

from docsigma.corpora.docstrings import load_docstrings


@pytest.fixture(scope="session")
def docstrings():
    """Return the docstrings of numpy alone: the whole corpus takes ten seconds."""
    return load_docstrings(packages=["numpy"])


@pytest.fixture(scope="session")
def browser():
    # One for all tests: a thread can run Playwright once only.
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="session")
def pets_and_money():
    """A model and forty documents, half of them about pets, half about money."""
    from docsigma import BayesianSMM, Vocabulary

    texts = ["cat dog cat dog vet"] * 20 + ["bank loan bank loan tax"] * 20
    words, counted = Vocabulary.fit_count(texts)
    model = BayesianSMM(1, l1=0.01, max_iter=300, random_state=0)
    model.fit(counted.counts).set_vocabulary(words)
    return model, model.posterior(counted.counts)
