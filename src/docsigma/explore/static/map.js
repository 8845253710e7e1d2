// The map: every document a dot in one picture that is written pixel by pixel.
(() => {
  "use strict";
  const DS = (window.DS = window.DS || {});
  // Radii of the ellipse that a document is inside of with a probability of 90 %:
  // the root of the 0.9 quantile of a chi-squared variable with two degrees of freedom.
  const NINETY = Math.sqrt(-2 * Math.log(0.1));
  // Outlined dots that are drawn at once.
  const OUTLINES = 5000;
  // Pixels from the middle of a dot at which its shape can be seen.
  const SHAPED = 3;
  const MAX_ZOOM = 5000;

  // Pixels of each shape, by radius.
  const dots = Array.from({ length: DS.colours.n_shapes() }, (_, shape) =>
    Array.from({ length: 9 }, (__, r) => DS.colours.pixels(shape, r)));

  const pack = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  const mix = (a, b, share) => a.map((c, i) => Math.round(c + (b[i] - c) * share));

  DS.Map = class {
    constructor(canvas, points) {
      this.canvas = canvas;
      this.points = points;
      this.n = points.x.length;
      this.context = canvas.getContext("2d", { alpha: false });
      this.colour = new Uint32Array(this.n).fill(pack([128, 128, 128]));
      this.weight = new Uint8Array(this.n).fill(1);
      this.shape = new Uint8Array(this.n);
      this.shaped = false;
      // Documents that are faded or have no name: below all others.
      this.behind = new Uint8Array(this.n);
      // The certain ones come last, and lie on top.
      this.order = Uint32Array.from({ length: this.n }, (_, i) => i)
        .sort((a, b) => points.certainty[a] - points.certainty[b]);
      this.exact = true;
      // Words at places of the map.
      this.names = [];
      this.selected = [];
      this.found = [];
      this.hover = -1;
      // What the last frame drew over the dots.
      this.over_dots = { ellipses: 0, outlines: 0 };
      this.n_old = 0;
      this.batch = "both";
      this.path = null;
      this.frames = 0;
      this.wanted = false;
      this.strength = DS.Map.ranks(points.certainty);
      this.bounds = DS.Map.bounds(points);
      new ResizeObserver(() => this.resize()).observe(canvas);
      this.resize();
    }

    // Other places for the same documents; without exact ones no ellipse is drawn.
    arrange({ x, y }, exact) {
      this.points = { ...this.points, x, y };
      this.exact = exact;
      this.bounds = DS.Map.bounds(this.points);
      this.home();
    }

    // Ranks of bytes among all of them, from 0 to 255: texts that are all short, or all
    // long, differ little in certainty itself, and use the whole scale this way.
    static ranks(bytes) {
      const counts = new Array(256).fill(0);
      for (const value of bytes) counts[value] += 1;
      let before = 0;
      const ranks = counts.map((count) => {
        before += count;
        return Math.round((255 * (before - count / 2)) / bytes.length);
      });
      return bytes.map((value) => ranks[value]);
    }

    // The middle 99.8 % in either direction, so that one far document shrinks nothing.
    static bounds({ x, y }) {
      const edges = (values) => {
        const sorted = Float32Array.from(values).sort();
        const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
        return [at(0.001), at(0.999)];
      };
      return [...edges(x), ...edges(y)];
    }

    resize() {
      const { clientWidth: width, clientHeight: height } = this.canvas;
      if (!width || !height) return;
      const view = this.view;
      this.ratio = Math.min(2, window.devicePixelRatio || 1);
      this.width = this.canvas.width = Math.round(width * this.ratio);
      this.height = this.canvas.height = Math.round(height * this.ratio);
      this.image = this.context.createImageData(this.width, this.height);
      this.pixels = new Uint32Array(this.image.data.buffer);
      if (view && !this.at_home) this.draw();
      else this.home();
    }

    home() {
      const [left, right, bottom, top] = this.bounds;
      const wide = this.panes()[0].width;
      const room = Math.max(120, this.height - 100 * this.ratio);
      const scale = 0.94 * Math.min(
        wide / Math.max(right - left, 1e-6), room / Math.max(top - bottom, 1e-6));
      this.least = scale / 20;
      this.view = { x: (left + right) / 2, y: (top + bottom) / 2, scale };
      this.home_scale = scale;
      this.changed();
      // Until it is moved, the map shows all in whatever room it has.
      this.at_home = true;
    }

    // Parts of the canvas, each with a batch: one, or two side by side.
    panes() {
      if (this.batch !== "side") {
        const only = { both: null, old: 0, new: 1 }[this.batch] ?? null;
        return [{ left: 0, width: this.width, only }];
      }
      const half = Math.floor(this.width / 2);
      return [{ left: 0, width: half, only: 0 }, { left: half, width: half, only: 1 }];
    }

    pane(x) {
      return this.panes().findLast((pane) => x >= pane.left) || this.panes()[0];
    }

    shown(row, only) {
      return only === null || (row >= this.n_old ? 1 : 0) === only;
    }

    // From pixels of the canvas to the map.
    place(x, y) {
      const pane = this.pane(x);
      const { x: cx, y: cy, scale } = this.view;
      return [
        (x - pane.left - pane.width / 2) / scale + cx,
        (this.height / 2 - y) / scale + cy,
      ];
    }

    zoom(factor, x = this.width / 2, y = this.height / 2) {
      const [px, py] = this.place(x, y);
      const { scale } = this.view;
      const most = MAX_ZOOM * this.home_scale;
      this.view.scale = Math.min(most, Math.max(this.least, scale * factor));
      const [qx, qy] = this.place(x, y);
      this.view.x += px - qx;
      this.view.y += py - qy;
      this.changed();
    }

    move(dx, dy) {
      this.view.x -= dx / this.view.scale;
      this.view.y += dy / this.view.scale;
      this.changed();
    }

    centre(row) {
      this.view.x = this.points.x[row];
      this.view.y = this.points.y[row];
      this.changed();
    }

    changed() {
      this.at_home = false;
      this.draw();
      this.onview?.();
    }

    // Colours by `colour_of` a row, faded where others are more certain or `faded` says so,
    // and the shape of each row's number if it has one.
    paint(colour_of, show, faded, number_of = () => 0) {
      const ground = DS.colours.ground();
      const { strength } = this;
      const cache = new Map();
      for (let i = 0; i < this.n; i++) {
        const [key, colour] = colour_of(i);
        const level = show === "opacity" ? 1 + (strength[i] >> 5) : 8;
        const away = faded(i);
        const name = key * 32 + level * 2 + (away ? 1 : 0);
        let found = cache.get(name);
        if (found === undefined) {
          const share = away ? 0.07 : 0.25 + 0.75 * (level / 8);
          found = pack(mix(ground, colour, share));
          cache.set(name, found);
        }
        this.colour[i] = found;
        const number = number_of(i);
        this.shape[i] = DS.colours.shape(number);
        this.behind[i] = away || number < 0 ? 1 : 0;
        this.weight[i] = show === "size" ? Math.round(strength[i] / 85) : 1;
      }
      this.shaped = this.shape.some((shape) => shape > 0);
      this.draw();
    }

    // The ellipse of the document below the pointer; the dots stay as they are.
    point(row) {
      if (row === this.hover) return;
      this.hover = row;
      this.draw(false);
    }

    draw(dots = true) {
      this.stale ||= dots;
      if (this.wanted) return;
      this.wanted = true;
      requestAnimationFrame(() => {
        this.wanted = false;
        this.drawNow();
        this.frames += 1;
      });
    }

    drawNow() {
      if (!this.view || !this.pixels) return;
      if (this.stale !== false) this.fill();
      this.stale = false;
      this.context.putImageData(this.image, 0, 0);
      this.over_dots = { ellipses: 0, outlines: 0 };
      for (const pane of this.panes()) this.over(pane);
      if (this.path) this.drawPath();
    }

    fill() {
      this.pixels.fill(pack(DS.colours.ground()));
      const zoomed = Math.log2(Math.max(1, this.view.scale / this.home_scale));
      const crowd = this.n > 30_000 ? 0 : this.n > 3000 ? 1 : 2;
      const grow = Math.min(3, Math.floor(zoomed / 1.5));
      const base = Math.round((crowd + grow) * (this.ratio > 1 ? 1.5 : 1));
      for (const pane of this.panes()) for (const behind of [1, 0]) this.dots(pane, base, behind);
    }

    dots({ left, width, only }, base, behind) {
      const { x, y } = this.points;
      const { x: cx, y: cy, scale } = this.view;
      const { pixels, order, colour, weight, shape, width: row_length, height } = this;
      const middle = left + width / 2;
      const steps = dots.map((radii) => radii.map((pixels_of) =>
        Int32Array.from(pixels_of, ([a, b]) => a + b * row_length)));
      const least = this.shaped ? Math.round(SHAPED * this.ratio) : 0;
      const split = this.n_old;
      for (let k = 0; k < order.length; k++) {
        const i = order[k];
        if (this.behind[i] !== behind) continue;
        if (only !== null && (i >= split ? 1 : 0) !== only) continue;
        const px = Math.round((x[i] - cx) * scale + middle);
        const py = Math.round(height / 2 - (y[i] - cy) * scale);
        const r = Math.min(8, Math.max(least, base + weight[i]));
        if (px < left + r || px >= left + width - r || py < r || py >= height - r) continue;
        const at = px + py * row_length;
        const disc = steps[shape[i]][r];
        const value = colour[i];
        for (let s = 0; s < disc.length; s++) pixels[at + disc[s]] = value;
      }
    }

    screen(row, pane) {
      const { x: cx, y: cy, scale } = this.view;
      return [
        (this.points.x[row] - cx) * scale + pane.left + pane.width / 2,
        this.height / 2 - (this.points.y[row] - cy) * scale,
      ];
    }

    // The ellipse of one document, outlines of many, and the line between two batches.
    over(pane) {
      const { context } = this;
      const dark = DS.colours.theme() === "dark";
      context.save();
      context.beginPath();
      context.rect(pane.left, 0, pane.width, this.height);
      context.clip();
      context.strokeStyle = dark ? "#ffffff" : "#000000";
      const many = this.selected.length > 1 ? this.selected : this.found;
      const radius = (this.shaped ? 6 : 4) * this.ratio;
      context.lineWidth = 1.5 * this.ratio;
      context.beginPath();
      for (const row of many.slice(0, OUTLINES)) {
        if (!this.shown(row, pane.only)) continue;
        const [px, py] = this.screen(row, pane);
        context.moveTo(px + radius, py);
        context.arc(px, py, radius, 0, 2 * Math.PI);
        this.over_dots.outlines += 1;
      }
      context.stroke();
      const one = this.selected.length === 1 ? [this.selected[0], this.hover] : [this.hover];
      for (const row of new Set(one)) {
        if (row < 0 || !this.shown(row, pane.only)) continue;
        const [px, py] = this.screen(row, pane);
        context.beginPath();
        context.arc(px, py, radius, 0, 2 * Math.PI);
        context.stroke();
        if (!this.exact) {
          this.over_dots.outlines += 1;
          continue;
        }
        const { a, b, angle } = this.ellipse(row);
        const scale = NINETY * this.view.scale;
        context.beginPath();
        context.ellipse(px, py, a * scale, b * scale, -angle, 0, 2 * Math.PI);
        context.stroke();
        this.over_dots.ellipses += 1;
      }
      this.write(pane);
      context.restore();
      if (pane.left > 0) {
        context.fillStyle = dark ? "#38404d" : "#d5d9e0";
        context.fillRect(pane.left, 0, this.ratio, this.height);
      }
    }

    // Names, each with a halo of the ground's colour; one that would cover another waits
    // until the map is larger.
    write({ left, width }) {
      const { context } = this;
      const { x: cx, y: cy, scale } = this.view;
      context.font = `600 ${12 * this.ratio}px sans-serif`;
      context.textAlign = "center";
      context.lineJoin = "round";
      context.lineWidth = 4 * this.ratio;
      context.fillStyle = DS.colours.theme() === "dark" ? "#ffffff" : "#000000";
      context.strokeStyle = DS.colours.css(DS.colours.ground());
      const written = [];
      for (const { x, y, text } of this.names) {
        const [px, py] = [(x - cx) * scale + left + width / 2, this.height / 2 - (y - cy) * scale];
        const half = context.measureText(text).width / 2 + 3 * this.ratio;
        const covers = (other) => Math.abs(other.py - py) < 16 * this.ratio
          && Math.abs(other.px - px) < other.half + half;
        if (written.some(covers)) continue;
        written.push({ px, py, half });
        context.strokeText(text, px, py);
        context.fillText(text, px, py);
      }
    }

    // Standard deviations along the two axes of a covariance, and the first one's angle.
    ellipse(row) {
      const { xx, xy, yy } = this.points;
      const [p, q, r] = [xx[row], xy[row], yy[row]];
      const half = (p + r) / 2;
      const root = Math.hypot((p - r) / 2, q);
      return {
        a: Math.sqrt(Math.max(0, half + root)),
        b: Math.sqrt(Math.max(0, half - root)),
        angle: Math.atan2(2 * q, p - r) / 2,
      };
    }

    drawPath() {
      const { context } = this;
      context.beginPath();
      for (const [x, y] of this.path) context.lineTo(x, y);
      context.closePath();
      context.lineWidth = 1.5 * this.ratio;
      context.strokeStyle = DS.colours.theme() === "dark" ? "#8ab4ff" : "#2457a6";
      context.fillStyle = "rgba(90, 140, 220, 0.15)";
      context.fill();
      context.stroke();
    }

    // The document nearest to a pixel, -1 if none is within `reach` of it.
    nearest(x, y, reach) {
      const pane = this.pane(x);
      const [px, py] = this.place(x, y);
      let best = (reach / this.view.scale) ** 2;
      let found = -1;
      for (let i = 0; i < this.n; i++) {
        const away = (this.points.x[i] - px) ** 2 + (this.points.y[i] - py) ** 2;
        if (away < best && this.shown(i, pane.only)) [best, found] = [away, i];
      }
      return found;
    }

    // Documents inside a line of pixels, by how often a ray from them crosses it.
    inside(path) {
      const pane = this.pane(path[0][0]);
      const line = path.map(([x, y]) => this.place(x, y));
      const found = [];
      for (let i = 0; i < this.n; i++) {
        if (!this.shown(i, pane.only)) continue;
        const [px, py] = [this.points.x[i], this.points.y[i]];
        let within = false;
        for (let j = 0, k = line.length - 1; j < line.length; k = j++) {
          const [ax, ay] = line[j];
          const [bx, by] = line[k];
          if (ay > py !== by > py && px < ((bx - ax) * (py - ay)) / (by - ay) + ax) {
            within = !within;
          }
        }
        if (within) found.push(i);
      }
      return found;
    }
  };
})();
