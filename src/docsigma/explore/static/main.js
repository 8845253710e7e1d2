// The page, put together: what is seen, and the address that says so.
(async () => {
  "use strict";
  const DS = (window.DS = window.DS || {});
  const $ = (id) => document.getElementById(id);
  const app = (DS.app = {
    source: DS.source(), selected: [], excerpts: [], shown: null, results: null, query: "",
    colour: "topic", show: "opacity", highlight: null, tab: "Topics",
  });

  app.say = (text) => { $("status").textContent = text; };
  app.safely = async (action) => {
    try {
      await action();
    } catch (error) {
      app.say(`${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.`);
    }
  };

  const kept = new URLSearchParams(location.hash.slice(1));
  const stored = () => { try { return localStorage.getItem("docsigma-theme"); } catch { return null; } };
  const wished = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.documentElement.dataset.theme = stored() || wished;

  let timer = 0;
  app.keep = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const state = new URLSearchParams({ colour: app.colour, show: app.show, tab: app.tab });
      if (app.highlight !== null) state.set("only", app.highlight);
      if (app.selected.length && app.selected.length <= 200) state.set("rows", app.selected.join("."));
      if (app.query) state.set("q", app.query);
      if (app.map.batch !== "both") state.set("batch", app.map.batch);
      const { x, y, scale } = app.map.view;
      state.set("view", [x, y, scale / app.map.home_scale].map((v) => v.toPrecision(5)).join(","));
      history.replaceState(null, "", `#${state}`);
    }, 150);
  };

  app.repaint = () => {
    const { topic, odd, certainty } = app.points;
    const { label, predicted, doubt } = app.state;
    const only = app.highlight;
    const named = (code) => [code + 1, DS.colours.named(code)];
    const ramp = (value) => [value, DS.colours.ramp(value / 255)];
    const code_of = (i) => (label[i] >= 0 || !predicted ? label[i] : predicted[i]);
    const kinds = {
      topic: [(i) => named(topic[i]), (i) => only !== null && topic[i] !== only],
      label: [(i) => named(code_of(i)), (i) => only !== null && code_of(i) !== only],
      doubt: [(i) => ramp(doubt ? doubt[i] : 255 - certainty[i]), () => false],
      odd: [(i) => ramp(odd[i]), () => false],
    };
    app.map.paint(kinds[app.colour][0], app.show, kinds[app.colour][1]);
    legend();
  };

  function legend() {
    const { h } = DS;
    const names = { topic: app.about.topics.map((t) => t.words.slice(0, 3).join(", ")), label: app.state.names }[app.colour];
    $("legend").classList.toggle("names", Boolean(names));
    if (names) {
      const shown = names.slice(0, 12).map((name, code) => h("div", {}, DS.swatch(code), name));
      if (app.colour === "label" && !app.state.predicted) shown.push(h("div", {}, DS.swatch(-1), "no label yet"));
      if (names.length > 12) shown.push(h("div", {}, `and ${names.length - 12} more`));
      $("legend").replaceChildren(...shown);
      return;
    }
    const stops = [0, 0.5, 1].map((share) => DS.colours.css(DS.colours.ramp(share))).join(", ");
    const ends = app.colour === "odd" ? ["like a topic", "like none"]
      : app.state.doubt ? ["sure of its label", "in doubt"] : ["place known", "place unknown"];
    $("legend").replaceChildren(h("div", {}, ends[0], h("i", { class: "bar",
      style: { width: "70px", height: "9px", background: `linear-gradient(90deg, ${stops})` } }), ends[1]));
  }

  app.paintBy = (colour) => {
    app.colour = $("colour").value = colour;
    app.highlight = null;
    app.repaint();
    app.keep();
  };
  const toggle = (colour) => (number) => {
    app.highlight = app.colour === colour && app.highlight === number ? null : number;
    app.colour = $("colour").value = colour;
    app.repaint();
    app.render();
    app.keep();
  };
  app.toggleTopic = toggle("topic");
  app.toggleLabel = toggle("label");

  app.readState = async () => {
    app.state = await app.source.state();
    app.repaint();
    app.learning.refresh();
  };

  app.select = async (rows, { tab = "Document" } = {}) => {
    app.selected = app.map.selected = rows;
    app.shown = rows.length === 1 ? await app.source.document(rows[0]) : null;
    app.excerpts = rows.length > 1 ? await app.source.rows(rows.slice(0, 100)) : [];
    if (tab) app.tab = tab;
    app.map.draw();
    app.learning.refresh();
    app.render();
    app.keep();
  };
  // Show one document, and move the map if it is not on it.
  app.open = (row) => app.safely(async () => {
    const [x, y] = app.map.screen(row, app.map.panes()[0]);
    if (x < 0 || y < 0 || x > app.map.width || y > app.map.height) app.map.centre(row);
    await app.select([row]);
  });

  app.render = () => {
    const names = [...Object.keys(app.panels)];
    $("tabs").replaceChildren(...names.map((name) => DS.h("button", {
      type: "button", role: "tab", "aria-selected": String(name === app.tab), "data-tab": name,
      onclick: () => { app.tab = name; app.render(); app.keep(); },
    }, name)));
    const before = $("panel").scrollTop;
    const same = $("panel").dataset.shown === `${app.tab} ${app.selected}`;
    $("panel").replaceChildren(...app.panels[app.tab](app).flat(Infinity).filter(Boolean));
    $("panel").dataset.shown = `${app.tab} ${app.selected}`;
    $("panel").scrollTop = same ? before : 0;
  };

  app.search = async (text) => {
    app.query = text.trim();
    if (!app.query) return;
    app.results = await app.source.search(app.query);
    app.tab = "Results";
    app.selected = app.map.selected = app.results.slice(0, 10).map((found) => found.row);
    app.map.draw();
    app.learning.refresh();
    app.render();
    app.keep();
  };
  app.saveCsv = async () => DS.download("predictions.csv", await app.source.csv(), "text/csv");

  function listen() {
    const tool = DS.listen(app.map, {
      pick: (row, more) => app.safely(() => {
        if (row < 0) return more ? null : app.select([], { tab: null });
        if (!more) return app.select([row]);
        const without = app.selected.filter((other) => other !== row);
        return app.select(without.length < app.selected.length ? without : [...app.selected, row]);
      }),
      choose: (rows) => app.safely(() => app.select(rows)),
      point: (row) => { if (row >= 0) app.say(app.about.topics[app.points.topic[row]].words.slice(0, 6).join(", ")); },
    });
    const lasso = () => $("lasso").setAttribute("aria-pressed", String(tool.toggle()));
    const theme = () => {
      const now = DS.colours.theme() === "dark" ? "light" : "dark";
      document.documentElement.dataset.theme = now;
      try { localStorage.setItem("docsigma-theme", now); } catch { /* a page from a file may not */ }
      app.repaint();
      app.learning.refresh();
      app.render();
    };
    $("lasso").addEventListener("click", lasso);
    $("home").addEventListener("click", () => app.map.home());
    $("theme").addEventListener("click", theme);
    $("colour").addEventListener("change", (event) => { app.paintBy(event.target.value); app.render(); });
    $("show").addEventListener("change", (event) => { app.show = event.target.value; app.repaint(); app.keep(); });
    $("batch").addEventListener("change", (event) => { app.map.batch = event.target.value; app.map.home(); });
    $("search").addEventListener("submit", (event) => {
      event.preventDefault();
      app.safely(() => app.search($("query").value));
    });
    $("csv").addEventListener("click", () => app.safely(app.saveCsv));
    $("png").addEventListener("click", () => {
      app.map.drawNow();
      app.map.canvas.toBlob((blob) => DS.download("map.png", blob));
    });
    const keys = {
      "/": () => $("query").focus(), Home: () => app.map.home(), l: lasso, d: theme,
      u: () => app.safely(() => app.learning.label(null)),
      Escape: () => { if (app.learning.asking) app.learning.stop(); app.safely(() => app.select([], { tab: null })); },
    };
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
        if (event.key === "Escape") event.target.blur();
        return;
      }
      const name = app.state.names[Number(event.key) - 1];
      if (keys[event.key]) keys[event.key]();
      else if (/^[1-9]$/.test(event.key) && name !== undefined) app.safely(() => app.learning.label(name));
      else return;
      event.preventDefault();
    });
  }

  async function restore() {
    const choose = (id, value) => {
      if (value !== null && [...$(id).options].some((option) => option.value === value)) $(id).value = value;
      return $(id).value;
    };
    app.colour = choose("colour", kept.get("colour"));
    app.show = choose("show", kept.get("show"));
    app.map.batch = app.about.n_old ? choose("batch", kept.get("batch")) : "both";
    if (kept.has("only")) app.highlight = Number(kept.get("only"));
    const view = (kept.get("view") || "").split(",").map(Number);
    app.map.home();
    if (view.length === 3 && view.every(Number.isFinite) && view[2] > 0) {
      app.map.view = { x: view[0], y: view[1], scale: view[2] * app.map.home_scale };
    }
    app.repaint();
    const rows = (kept.get("rows") || "").split(".").filter(Boolean).map(Number)
      .filter((row) => Number.isInteger(row) && row >= 0 && row < app.about.n);
    if (kept.get("q")) {
      $("query").value = kept.get("q");
      await app.search(kept.get("q"));
    }
    if (rows.length) await app.select(rows);
    if (app.panels[kept.get("tab")]) app.tab = kept.get("tab");
  }

  await app.safely(async () => {
    [app.about, app.points, app.state] = await Promise.all(
      [app.source.about(), app.source.points(), app.source.state()]);
    const n = app.about.n.toLocaleString("en");
    document.title = `${app.about.title} · docsigma`;
    $("title").textContent = `${app.about.title}: ${n} documents`;
    if (!app.about.can_learn) $("query").placeholder = "Search words ( / )";
    $("batch-choice").hidden = !app.about.n_old;
    app.map = DS.map = new DS.Map($("map"), app.points);
    app.map.n_old = app.about.n_old;
    app.learning = new DS.Learning(app);
    app.panels = { ...DS.panels, Label: () => app.learning.panel() };
    if (app.about.drift) app.panels.Batches = DS.batches;
    await restore();
    app.map.onview = app.keep;
    listen();
    app.learning.refresh();
    app.render();
    app.say("Drag to move, scroll to zoom, click a dot to read it, hold Shift and draw to select many.");
    requestAnimationFrame(() => requestAnimationFrame(() => {
      DS.ready = performance.now();
      document.documentElement.dataset.ready = "";
    }));
  });
})();
