// What the colours and shapes of the map mean: below the map, and in its picture.
(() => {
  "use strict";
  const DS = (window.DS = window.DS || {});
  const { h } = DS;
  // Names in the picture, and the height of a line of them.
  const IN_PICTURE = 40;
  const LINE = 20;

  DS.swatch = (number) => h("i", {
    class: `swatch shape${DS.colours.shape(number)}`,
    style: { background: DS.colours.css(DS.colours.named(number)) },
  });

  // Names with their number and count, the most used first; null for a ramp.
  DS.legend = (app) => {
    const codes = app.colour === "topic" ? app.points.topic : app.codes();
    const names = { topic: app.about.topics.map((t) => t.words.slice(0, 3).join(", ")),
      label: app.state.names }[app.colour];
    if (!names) return null;
    const counts = new Array(names.length + 1).fill(0);
    for (const code of codes) counts[code < 0 ? names.length : code] += 1;
    const shown = names.map((name, number) => ({ name, number, count: counts[number] }))
      .filter(({ count }) => count > 0)
      .sort((a, b) => b.count - a.count || a.number - b.number);
    const rest = counts[names.length];
    return rest ? [...shown, { name: "no label yet", number: -1, count: rest }] : shown;
  };

  // Two ends of a ramp, and its colours.
  const ramp = (app) => ({
    ends: app.colour === "odd" ? ["like a topic", "like none"]
      : app.state.doubt ? ["sure of its label", "in doubt"] : ["place known", "place unknown"],
    stops: [0, 0.5, 1].map((share) => DS.colours.css(DS.colours.ramp(share))),
  });

  DS.showLegend = (app, element) => {
    const items = DS.legend(app);
    if (items === null) {
      const { ends, stops } = ramp(app);
      element.replaceChildren(h("span", { class: "key" }, ends[0], h("i", { class: "bar",
        style: { background: `linear-gradient(90deg, ${stops.join(", ")})` } }), ends[1]));
      return;
    }
    const toggle = app.colour === "topic" ? app.toggleTopic : app.toggleLabel;
    element.replaceChildren(...items.map(({ name, number, count }) => h("button", {
      type: "button", class: "key", title: `${name}: ${count.toLocaleString("en")} documents`,
      "aria-pressed": String(app.highlight === number), onclick: () => toggle(number),
    }, DS.swatch(number), h("span", {}, name))));
  };

  // The map with its legend below, as a canvas.
  DS.picture = (app) => {
    const { map } = app;
    const unit = map.ratio;
    const items = DS.legend(app);
    const columns = Math.max(1, Math.floor(map.width / (190 * unit)));
    const shown = items === null ? [] : items.slice(0, IN_PICTURE);
    const lines = items === null ? 1 : Math.ceil((shown.length + 1) / columns);
    const picture = h("canvas", { width: map.width, height: map.height + (lines + 1) * LINE * unit });
    const context = picture.getContext("2d");
    context.fillStyle = DS.colours.css(DS.colours.ground());
    context.fillRect(0, 0, picture.width, picture.height);
    context.drawImage(map.canvas, 0, 0);
    context.font = `${12 * unit}px sans-serif`;
    context.textBaseline = "middle";
    const ink = DS.colours.theme() === "dark" ? "#e6e9ee" : "#1d2330";
    const wide = map.width / columns;
    const write = (text, x, y, most) => {
      context.fillStyle = ink;
      let cut = text;
      while (cut && context.measureText(cut).width > most) cut = cut.slice(0, -1);
      context.fillText(cut === text ? text : `${cut.slice(0, -1)}…`, x, y);
    };
    const y = (line) => map.height + (line + 1) * LINE * unit;
    if (items === null) {
      const { ends, stops } = ramp(app);
      const fill = context.createLinearGradient(130 * unit, 0, 230 * unit, 0);
      stops.forEach((stop, i) => fill.addColorStop(i / 2, stop));
      context.fillStyle = fill;
      context.fillRect(130 * unit, y(0) - 5 * unit, 100 * unit, 10 * unit);
      write(ends[0], 10 * unit, y(0), 115 * unit);
      write(ends[1], 240 * unit, y(0), wide);
      return picture;
    }
    shown.forEach(({ name, number }, i) => {
      const [left, middle] = [(i % columns) * wide + 12 * unit, y(Math.floor(i / columns))];
      context.fillStyle = DS.colours.css(DS.colours.named(number));
      for (const [dx, dy] of DS.colours.pixels(DS.colours.shape(number), Math.round(5 * unit))) {
        context.fillRect(left + dx, middle + dy, 1, 1);
      }
      write(name, left + 12 * unit, middle, wide - 28 * unit);
    });
    if (items.length > shown.length) {
      write(`and ${items.length - shown.length} more`,
        (shown.length % columns) * wide + 12 * unit, y(Math.floor(shown.length / columns)), wide);
    }
    return picture;
  };
})();
