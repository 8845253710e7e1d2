"""Colours of topics and labels, as people with other eyes see them."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from docsigma.explore.page import STATIC

# Matrices of Machado, Oliveira and Fernandes (2009) for the whole lack of one kind of
# cone, on linear RGB.
EYES = {
    "all cones": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
# Differences in CIELAB: 2.3 is just noticeable side by side; dots lie apart.
LEAST = 10.0


def named():
    text = (STATIC / "colours.js").read_text("utf-8")
    block = text.split("const NAMED = [")[1].split("];")[0]
    found = re.findall(r"\[(\d+), (\d+), (\d+)\]", block)
    return np.array(found, dtype=float)


def lab(colours, eye):
    c = colours / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.array(EYES[eye]).T, 0, 1) @ TO_XYZ.T
    t = seen / TO_XYZ.sum(axis=1)
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    x, y, z = f.T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("eye", list(EYES))
def test_ten_colours_can_be_told_apart(theme, eye):
    colours = named()
    assert len(colours) == 10
    if theme == "dark":
        colours = np.rint(colours + (255 - colours) * 0.28)
    places = lab(colours, eye)
    pairs = itertools.combinations(range(len(places)), 2)
    least = min(np.linalg.norm(places[a] - places[b]) for a, b in pairs)
    assert least > LEAST
