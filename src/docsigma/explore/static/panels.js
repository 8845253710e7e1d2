// What is beside the map: topics, odd documents, a document, results, two batches.
(() => {
  "use strict";
  const DS = (window.DS = window.DS || {});
  const { h } = DS;
  // The space does not break.
  const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)}\u00a0%`;
  // As a length of CSS, which takes no space.
  const width = (share) => `${(100 * share).toFixed(1)}%`;
  const { swatch } = DS;

  const bar = (name, share, text, part = null) => [
    h("span", { title: name }, name),
    h("span", { class: "track" },
      h("span", { class: "fill", style: { width: width(share) } }),
      part === null ? null : h("span", { class: "over", style: { width: width(part) } })),
    h("span", {}, text),
  ];

  // A list of documents that open when they are clicked.
  function list(app, rows, note = () => null) {
    return h("ul", { class: "list" }, rows.map((found) => h("li", {}, h("button", {
      class: "item", type: "button", "data-row": found.row,
      "aria-current": app.selected.includes(found.row) ? "true" : null,
      onclick: () => app.open(found.row),
    }, found.excerpt || "(no text)", h("small", {}, [found.id, found.label && `label ${found.label}`,
      note(found)].filter(Boolean).join(" · "))))));
  }

  function topics(app) {
    const { topics: found } = app.about;
    return [
      h("p", { class: "faint" }, "Click a topic to see it alone on the map."),
      found.map((topic, number) => h("div", {},
        h("button", {
          class: "topic", type: "button", "data-topic": number,
          "aria-pressed": String(app.highlight === number && app.colour === "topic"),
          onclick: () => app.toggleTopic(number),
        }, swatch(number), h("span", { class: "words" }, topic.words.join(", ")),
        h("span", { class: "count" }, topic.size.toLocaleString("en"))),
        app.highlight === number && app.colour === "topic"
          ? [h("p", { class: "faint" }, "Most typical documents"), list(app, topic.typical)]
          : [])),
    ];
  }

  const odd = (app) => [
    h("p", { class: "faint" }, "Documents that lie furthest from every topic, given how well "
      + "their own place is known."),
    h("p", {}, h("button", { type: "button", onclick: () => app.paintBy("odd") },
      "Colour the map by oddness")),
    list(app, app.about.odd),
    app.about.unknown.length ? [
      h("h2", {}, "Not known to the model"),
      h("p", { class: "faint" }, "Half of their words or more were not in the texts it learned "
        + "from, so that their place says little."),
      list(app, app.about.unknown, (found) => `${percent(found.unknown)} of words unknown`),
    ] : [],
  ];

  function results(app) {
    if (app.results === null) return [h("p", { class: "faint" }, "Search for something first.")];
    if (!app.results.length) {
      return [h("p", {}, "Nothing found: the model knows none of these words.")];
    }
    const sure = (found) => (found.sure === undefined || found.sure === null
      ? null : `sure ${percent(found.sure)}`);
    return [
      h("h2", {}, `Most like “${app.query}”`),
      list(app, app.results, (found) =>
        [sure(found), found.words?.length && `by ${found.words.join(", ")}`]
          .filter(Boolean).join(" · ")),
      h("p", { class: "faint" }, app.about.can_learn
        ? "“Sure” is how often the document stays in front when places are drawn from the "
          + "Gaussians, or the index's probability of one topic."
        : "This page looks for words; docsigma explore ranks by meaning."),
    ];
  }

  function marked(pieces) {
    const classes = ["plain", null, "unknown"];
    return pieces.map(([text, kind]) => (kind === 1 ? text
      : h("span", { class: classes[kind], title: kind === 2 ? "unknown word" : null }, text)));
  }

  function doubt({ classes: [first, second] }) {
    if (first.probability > 0.9) return "Sure of its label";
    return first.probability > 0.5 ? "In some doubt" : `In doubt, above all between ${first.label} and ${second.label}`;
  }

  function prediction(found) {
    if (!found.classes) return [];
    return [
      h("h2", {}, "Probable labels"),
      h("div", { class: "bars" }, found.classes.map(({ label, probability }) =>
        bar(label, probability, percent(probability, 1)))),
      h("p", { class: "faint", id: "doubt" }, `${doubt(found)}: entropy ${found.entropy.toFixed(2)} `
        + `nats of ${Math.log(found.n_classes).toFixed(2)} at the most.`),
    ];
  }

  // How well the place of a document is known, in words and of what it is a share.
  function certainty(app, found) {
    const words = found.certainty > 2 / 3 ? "well known"
      : found.certainty > 1 / 3 ? "roughly known" : "hardly known";
    const all = app.points.certainty;
    const below = all.reduce((sum, other) => sum + (other < all[found.row]), 0) / all.length;
    return `${words}: ${percent(found.certainty)} of the prior’s variance removed, `
      + `more than for ${percent(below)} of the documents`;
  }

  function document_(app) {
    if (app.selected.length > 1) {
      return [
        h("h2", {}, `${app.selected.length.toLocaleString("en")} documents selected`),
        h("p", { class: "faint" }, app.selected.length > 100 ? "The first hundred:" : ""),
        list(app, app.excerpts),
      ];
    }
    const found = app.shown;
    if (!found) return [h("p", { class: "faint" }, "Click a dot on the map to read it.")];
    const unknown = new Set(found.pieces.filter(([, kind]) => kind === 2).map(([text]) => text));
    return [
      h("h2", {}, found.id),
      h("div", { class: "text", tabindex: "0" }, marked(found.pieces),
        found.left_out ? h("p", { class: "faint" }, `${found.left_out} characters more`) : null),
      h("dl", {},
        found.number ? [h("dt", {}, "row"), h("dd", {}, `${found.number} of its file`)] : [],
        h("dt", {}, "place"), h("dd", { id: "certainty" }, certainty(app, found)),
        h("dt", {}, "odder than"), h("dd", {}, `${Math.floor(100 * found.oddness)} % of the documents`),
        h("dt", {}, "known words"), h("dd", {}, String(found.n_tokens ?? "?")),
        h("dt", {}, "unknown words"), h("dd", {}, String(unknown.size)),
        h("dt", {}, "topic"), h("dd", {}, swatch(found.topic),
          app.about.topics[found.topic].words.slice(0, 4).join(", ")),
        found.label ? [h("dt", {}, "label"), h("dd", {}, found.label)] : []),
      prediction(found),
      h("h2", {}, "Nearest documents"),
      list(app, found.neighbours, (other) => `distance ${other.distance.toFixed(2)}`),
    ];
  }

  function shift(app, topic, scale) {
    const place = (value) => width(0.5 + value / (2 * scale));
    const word = { true: "grew", false: "shrank", null: "may be chance" }[String(topic.grew)];
    const { low, high, value } = topic.change;
    return h("div", { class: "shift" },
      h("div", { class: "words" }, topic.words.slice(0, 6).join(", ")),
      h("div", { class: "bars" }, bar("old", topic.old.value, percent(topic.old.value, 1)),
        bar("new", topic.new.value, percent(topic.new.value, 1))),
      h("div", { class: "interval" }, h("i", { class: "zero", style: { left: "50%" } }),
        h("i", { class: "whisker", style: { left: place(low), width: width((high - low) / (2 * scale)) } }),
        h("i", { class: "dot", style: { left: place(value) } })),
      h("div", { class: topic.grew === null ? "faint" : word },
        `${word}: ${value > 0 ? "+" : ""}${percent(value, 1)} (${percent(low, 1)} to ${percent(high, 1)})`),
      topic.grew ? list(app, topic.typical) : []);
  }

  function batches(app) {
    const { drift } = app.about;
    const scale = Math.max(0.01, ...drift.topics.map((topic) =>
      Math.max(Math.abs(topic.change.low), Math.abs(topic.change.high))));
    const { unexplained_old: old, unexplained_new: now, unexplained_rows: rows } = drift;
    const interval = (share) =>
      `${percent(share.value, 1)} (${percent(share.low, 1)} to ${percent(share.high, 1)})`;
    return [
      h("p", { class: "faint" }, "Shares of topics, and their change with 90 % intervals."),
      drift.topics.map((topic) => shift(app, topic, scale)),
      h("h2", {}, "What nothing explains"),
      h("p", {}, `${interval(now)} of the new batch, ${interval(old)} of the old one.`),
      list(app, rows),
    ];
  }

  DS.panels = { Topics: topics, "Odd ones": odd, Document: document_, Results: results };
  DS.batches = batches;
  DS.list = list;
})();
