// Colours that colour-blind people can tell apart, on light and on dark ground; beyond
// ten, shapes tell those of one colour apart.
(() => {
  "use strict";
  const DS = (window.DS = window.DS || {});

  // Ten colours after Petroff's accessible sequence, in order of how well they part.
  const NAMED = [
    [63, 144, 218], [255, 169, 14], [189, 31, 1], [131, 45, 182], [169, 107, 89],
    [231, 99, 0], [146, 218, 221], [185, 172, 112], [113, 117, 129], [148, 164, 162],
  ];
  // Lighter where the ground is dark.
  const lighter = ([r, g, b]) => [r, g, b].map((c) => Math.round(c + (255 - c) * 0.28));
  const RAMPS = {
    light: [[206, 214, 226], [222, 140, 30], [110, 22, 0]],
    dark: [[62, 72, 92], [232, 146, 60], [255, 240, 190]],
  };
  const GROUND = { light: [255, 255, 255], dark: [18, 21, 27] };
  const NOTHING = { light: [176, 182, 192], dark: [92, 100, 114] };

  const SHAPES = [
    (x, y, r) => x * x + y * y <= r * r + 0.8 * r,
    (x, y, r) => Math.max(Math.abs(x), Math.abs(y)) <= Math.round(0.85 * r),
    (x, y, r) => Math.abs(x) <= (y + r) / 2,
    (x, y, r) => Math.abs(x) + Math.abs(y) <= r,
    (x, y, r) => Math.min(Math.abs(x), Math.abs(y)) <= r / 4,
    (x, y, r) => Math.abs(x) <= (r - y) / 2,
    (x, y, r) => Math.abs(Math.abs(x) - Math.abs(y)) <= r / 4,
    (x, y, r) => Math.abs(x) <= Math.abs(y),
  ];

  const theme = () => (document.documentElement.dataset.theme === "dark" ? "dark" : "light");

  DS.colours = {
    theme,
    ground: () => GROUND[theme()],
    nothing: () => NOTHING[theme()],
    named(number) {
      if (number < 0) return NOTHING[theme()];
      const found = NAMED[number % NAMED.length];
      return theme() === "dark" ? lighter(found) : found;
    },
    ramp(share) {
      const stops = RAMPS[theme()];
      const place = Math.min(1.999, 2 * share);
      const [from, to] = [stops[Math.floor(place)], stops[Math.floor(place) + 1]];
      const part = place - Math.floor(place);
      return from.map((c, i) => Math.round(c + (to[i] - c) * part));
    },
    // Eight shapes of ten colours are eighty names; the style sheet has their outlines.
    shape: (number) => (number < 0 ? 0 : Math.floor(number / NAMED.length) % SHAPES.length),
    // Pixels of a shape of radius r, as steps from its middle.
    pixels(shape, r) {
      const found = [];
      for (let y = -r; y <= r; y++) {
        for (let x = -r; x <= r; x++) if (SHAPES[shape](x, y, r)) found.push([x, y]);
      }
      return found;
    },
    n_shapes: () => SHAPES.length,
    css: ([r, g, b]) => `rgb(${r} ${g} ${b})`,
  };
})();
