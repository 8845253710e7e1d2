"""Objective terms, estimators and optimisers, as parts that can be swapped.

Likelihood (:mod:`.multinomial`), treatment of the word loadings
(:mod:`.point_loadings`), prior (:mod:`.prior`) and covariance family
(:mod:`.diagonal`) know nothing of each other; training (:mod:`.paper`), inference
(:mod:`.centred_jensen`) and evidence (:mod:`.evidence`) put them together.
"""

from __future__ import annotations
