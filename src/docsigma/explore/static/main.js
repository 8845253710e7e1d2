// The page, put together: what is seen, and the address that says so.
(async () => {
  "use strict";
  const DS = (window.DS = window.DS || {});
  const $ = (id) => document.getElementById(id);
  const app = (DS.app = {
    source: DS.source(), selected: [], excerpts: [], shown: null, results: null, query: "",
    colour: "topic", show: "opacity", layout: "exact", highlight: null, tab: "Topics",
  });

  // A message at the top of the page, where the eye is; it goes by itself, errors do not.
  let fading = 0;
  app.say = (text, kind = "") => {
    clearTimeout(fading);
    $("status").classList.toggle("error", kind === "error");
    $("status").replaceChildren(text, kind === "undo" ? DS.h("button", { type: "button",
      onclick: () => app.safely(() => app.undo.undo()) }, "Undo") : "");
    if (kind !== "error" && kind !== "wait") fading = setTimeout(() => { $("status").textContent = ""; }, 6000);
  };
  app.safely = async (action) => {
    try {
      await action();
    } catch (error) {
      const { message } = error;
      const end = /[.?!]$/.test(message) ? "" : ".";
      app.say(`${message.charAt(0).toUpperCase()}${message.slice(1)}${end}`, "error");
    }
  };

  const HINT = matchMedia("(pointer: coarse)").matches
    ? "Drag to move, pinch to zoom, tap a dot to read it; Lasso selects many."
    : "Drag to move, scroll to zoom, click a dot to read it, hold Shift and draw to select many.";
  app.hint = () => (app.layout === "exact" ? HINT
    : "Neighbours lie together here; other distances and directions mean nothing.");
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

  // The label of each document, or else its most probable one; -1 without either.
  app.codes = () => {
    const { label, predicted } = app.state;
    return predicted ? label.map((code, i) => (code >= 0 ? code : predicted[i])) : label;
  };

  app.repaint = () => {
    const { topic, odd, certainty } = app.points;
    const { doubt } = app.state;
    const only = app.highlight;
    const codes = app.codes();
    const named = (code) => [code + 1, DS.colours.named(code)];
    const ramp = (value) => [value, DS.colours.ramp(value / 255)];
    const kinds = {
      topic: [(i) => named(topic[i]), (i) => only !== null && topic[i] !== only, (i) => topic[i]],
      label: [(i) => named(codes[i]), (i) => only !== null && codes[i] !== only, (i) => codes[i]],
      doubt: [(i) => ramp(doubt ? doubt[i] : 255 - certainty[i]), () => false],
      odd: [(i) => ramp(odd[i]), () => false],
    };
    const [colour, faded, number] = kinds[app.colour];
    app.map.names = app.names();
    app.map.paint(colour, app.show, faded, number);
    DS.showLegend(app, $("legend"));
  };

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
    await app.learning.reload();
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

  // What is found is outlined on the map, and nothing is selected.
  app.search = async (text) => {
    app.query = text.trim();
    if (!app.query) return;
    app.results = await app.source.search(app.query);
    app.tab = "Results";
    app.map.found = app.results.slice(0, 10).map((found) => found.row);
    await app.select([], { tab: null });
  };

  // Everything that hides, fades or marks documents, and what is being asked.
  app.clear = async () => {
    app.highlight = null;
    app.map.batch = $("batch").value = "both";
    app.map.found = [];
    app.results = null;
    app.query = $("query").value = "";
    app.learning.filter = "";
    if (app.learning.asking) app.learning.stop();
    if (app.tab === "Results") app.tab = "Topics";
    app.repaint();
    await app.select([], { tab: null });
  };
  // Labels, or else topics, in the middle of their documents, the largest first.
  app.names = () => {
    if (app.layout === "exact") return [];
    const { x, y } = app.neighbours;
    const byLabel = app.colour === "label" && app.state.names.length > 0;
    const texts = byLabel ? app.state.names : app.about.topics.map((topic) => topic.words.slice(0, 2).join(", "));
    const rows = texts.map(() => []);
    (byLabel ? app.codes() : app.points.topic).forEach((code, row) => { if (code >= 0) rows[code].push(row); });
    const middle = (values, inside) => inside.map((row) => values[row]).sort((a, b) => a - b)[inside.length >> 1];
    return texts.map((text, code) => ({ text, inside: rows[code] }))
      .filter(({ inside }) => inside.length).sort((a, b) => b.inside.length - a.inside.length)
      .map(({ text, inside }) => ({ text, x: middle(x, inside), y: middle(y, inside) }));
  };

  // A map on which neighbours lie together, with the topics' names where they are.
  app.arrange = async (layout) => {
    if (layout === "neighbours" && !app.neighbours) {
      app.say("Arranging by neighbours: half a minute for ten thousand documents, minutes for a hundred thousand …", "wait");
      app.neighbours = await app.source.neighbours();
      app.say("");
    }
    app.layout = layout;
    const exact = layout === "exact";
    app.map.arrange(exact ? app.points : app.neighbours, exact);
    app.map.names = app.names();
    $("hint").textContent = app.hint();
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
      point: (row) => {
        app.map.point(row);
        $("hint").textContent = row < 0 ? app.hint() : app.about.topics[app.points.topic[row]].words.slice(0, 6).join(", ");
      },
    });
    const lasso = (on) => $("lasso").setAttribute("aria-pressed", String(tool.toggle(on)));
    const theme = () => {
      const now = DS.colours.theme() === "dark" ? "light" : "dark";
      document.documentElement.dataset.theme = now;
      try { localStorage.setItem("docsigma-theme", now); } catch { /* a page from a file may not */ }
      app.repaint();
      app.learning.refresh();
      app.render();
    };
    $("status").addEventListener("click", () => app.say(""));
    $("lasso").addEventListener("click", () => lasso());
    $("home").addEventListener("click", () => app.map.home());
    $("theme").addEventListener("click", theme);
    $("colour").addEventListener("change", (event) => { app.paintBy(event.target.value); app.render(); });
    $("show").addEventListener("change", (event) => { app.show = event.target.value; app.repaint(); app.keep(); });
    $("layout").addEventListener("change", (event) => app.safely(async () => {
      try {
        await app.arrange(event.target.value);
      } finally {
        $("layout").value = app.layout;
      }
    }));
    $("batch").addEventListener("change", (event) => { app.map.batch = event.target.value; app.map.home(); });
    $("search").addEventListener("submit", (event) => {
      event.preventDefault();
      app.safely(() => app.search($("query").value));
    });
    $("csv").addEventListener("click", () => app.safely(app.saveCsv));
    $("png").addEventListener("click", () => {
      app.map.drawNow();
      DS.picture(app).toBlob((blob) => DS.download("map.png", blob));
    });
    const keys = {
      "/": () => $("query").focus(), Home: () => app.map.home(), l: () => lasso(), d: theme,
      u: () => app.safely(() => app.learning.press(null)),
      Escape: () => {
        if (app.learning.pending) app.learning.cancel();
        else {
          lasso(false);
          app.safely(app.clear);
        }
      },
    };
    document.addEventListener("keydown", (event) => {
      const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      const z = event.key.toLowerCase();
      // A box with text has its own undo.
      if ((event.ctrlKey || event.metaKey) && (z === "z" || z === "y") && !(typing && event.target.value)) {
        app.safely(() => (z === "y" || event.shiftKey ? app.undo.redo() : app.undo.undo()));
        event.preventDefault();
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (typing) {
        if (event.key === "Escape") event.target.blur();
        return;
      }
      const name = app.state.names[Number(event.key) - 1];
      if (keys[event.key]) keys[event.key]();
      else if (/^[1-9]$/.test(event.key) && name !== undefined) app.safely(() => app.learning.press(name));
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
    // The legend takes its room first.
    app.repaint();
    app.map.resize();
    app.map.home();
    if (view.length === 3 && view.every(Number.isFinite) && view[2] > 0) {
      app.map.view = { x: view[0], y: view[1], scale: view[2] * app.map.home_scale };
      app.map.at_home = false;
      app.map.draw();
    }
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
    $("layout-choice").hidden = !app.about.can_learn;
    $("batch-choice").hidden = !app.about.n_old;
    app.map = DS.map = new DS.Map($("map"), app.points);
    app.map.n_old = app.about.n_old;
    app.undo = new DS.Undo(app);
    app.learning = new DS.Learning(app);
    app.panels = { ...DS.panels, Label: () => app.learning.panel() };
    if (app.about.drift) app.panels.Batches = DS.batches;
    await restore();
    app.map.onview = app.keep;
    listen();
    app.learning.refresh();
    app.render();
    app.say("");
    $("hint").textContent = app.hint();
    requestAnimationFrame(() => requestAnimationFrame(() => {
      DS.ready = performance.now();
      document.documentElement.dataset.ready = "";
    }));
  });
})();
