// Labels: give them, learn from them, and be asked for the ones that help most.
(() => {
  "use strict";
  const DS = (window.DS = window.DS || {});
  const { h } = DS;
  // Labels between two fits while the page asks.
  const ROUND = 10;
  // Documents of a label that are listed.
  const LISTED = 100;

  DS.Learning = class {
    constructor(app) {
      this.app = app;
      this.asked = [];
      this.given = 0;
      this.busy = false;
      // A label that a key gave many documents, until it is confirmed.
      this.pending = null;
      this.filter = "";
      // Documents of the label whose name was clicked.
      this.own = { code: -1, rows: [] };
      const form = document.getElementById("labelling");
      this.input = document.getElementById("new-label");
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        const label = this.named(this.input.value.trim());
        if (!label) this.input.focus();
        else this.label(label);
      });
      this.input.addEventListener("input", () => this.chips());
      document.getElementById("unlabel").addEventListener("click", () => this.label(null));
      document.getElementById("skip").addEventListener("click", () => this.next());
    }

    // A number that is a label's key stands for it in the box too, unless a label has
    // this name.
    named(typed) {
      const { names } = this.app.state;
      const keyed = /^[1-9]$/.test(typed) && !names.includes(typed);
      return (keyed && names[Number(typed) - 1]) || typed;
    }

    get asking() {
      return this.asked.length > 0;
    }

    // A key labels one document; for many it asks first.
    press(label) {
      if (this.app.selected.length < 2) return this.label(label);
      this.pending = { label };
      this.refresh();
      document.getElementById("confirm").focus();
      return null;
    }

    cancel() {
      this.pending = null;
      this.refresh();
    }

    async label(label) {
      const { app } = this;
      this.pending = null;
      if (!app.selected.length) return;
      const rows = app.selected;
      await app.undo.record(() => app.source.label(rows, label));
      this.input.value = "";
      this.given += 1;
      const what = DS.counted(rows.length, "document");
      app.say(label === null ? `Label removed from ${what}.` : `${what} labelled “${label}”.`, "undo");
      if (this.asking && rows.length === 1 && rows[0] === this.asked[0].row) await this.next();
      else await app.select(rows, { tab: null });
    }

    // The next of the documents that are asked for; after a round, learn and ask again.
    async next() {
      this.asked.shift();
      if (this.asked.length) {
        await this.app.open(this.asked[0].row);
        return;
      }
      if (this.app.state.names.length > 1 && this.given >= ROUND / 2) await this.learn();
      this.given = 0;
      await this.ask();
    }

    async ask() {
      this.app.say("Looking for the documents whose labels would help most …");
      this.asked = (await this.app.source.proposals()).slice(0, ROUND);
      if (!this.asked.length) this.app.say("Every document has a label.");
      else {
        await this.app.open(this.asked[0].row);
        this.app.say("Give each document a label, by its number or a new name; Skip if you cannot tell.");
      }
    }

    stop() {
      this.asked = [];
      this.refresh();
      this.app.render();
    }

    async learn() {
      if (this.busy) return;
      this.busy = true;
      this.app.say("Learning …");
      try {
        await this.app.source.learn();
        await this.app.readState();
        this.app.paintBy("label");
        await this.app.select(this.app.selected, { tab: null });
        this.app.say("Learned: the map is coloured by the most probable label.");
      } finally {
        this.busy = false;
        this.app.render();
      }
    }

    // The bar below the panels that labels what is selected.
    refresh() {
      const { selected } = this.app;
      const n = selected.length;
      if (n < 2) this.pending = null;
      document.getElementById("labelling").hidden = n === 0;
      document.getElementById("skip").hidden = !this.asking;
      const asked = this.asking && n === 1 && selected[0] === this.asked[0].row;
      const what = DS.counted(n, "document");
      document.getElementById("chosen").textContent =
        asked ? `Which label fits? ${this.asked.length} left` : `Label ${what}:`;
      document.getElementById("asking").replaceChildren(...(this.pending ? this.question(what) : []));
      this.chips();
    }

    question(what) {
      const { label } = this.pending;
      const text = label === null ? `Remove the labels of ${what}?` : `Label ${what} “${label}”?`;
      return [h("span", {}, text),
        h("button", { type: "button", id: "confirm", class: "main",
          onclick: () => this.app.safely(() => this.label(label)) }, "Yes"),
        h("button", { type: "button", onclick: () => this.cancel() }, "No")];
    }

    // Labels that fit what is typed: those with a key first, then the most used.
    chips() {
      const { state } = this.app;
      const typed = this.named(this.input.value.trim()).toLowerCase();
      const counts = this.counts();
      const keyed = (number) => (number < 9 ? number - 9 : 0);
      const shown = state.names.map((name, number) => ({ name, number }))
        .filter(({ name }) => name.toLowerCase().includes(typed))
        .sort((a, b) => keyed(a.number) - keyed(b.number) || counts[b.number] - counts[a.number]);
      document.getElementById("chips").replaceChildren(...shown.map(({ name, number }) =>
        h("button", { type: "button", title: name, "data-label": name,
          onclick: () => this.app.safely(() => this.label(name)) },
        DS.swatch(number), h("span", { class: "cut" }, name),
        number < 9 ? h("kbd", {}, String(number + 1)) : null)));
    }

    counts() {
      const { label, names } = this.app.state;
      const counts = new Array(names.length).fill(0);
      for (const code of label) if (code >= 0) counts[code] += 1;
      return counts;
    }

    // Labels with their counts, the most used first, and a box to find one.
    list() {
      const { app } = this;
      const counts = this.counts();
      const fits = ({ name }) => name.toLowerCase().includes(this.filter.toLowerCase());
      return app.state.names.map((name, code) => ({ name, code })).filter(fits)
        .sort((a, b) => counts[b.code] - counts[a.code])
        .map(({ name, code }) => h("div", {}, h("button", {
          class: "topic", type: "button", title: name, "data-name": name,
          "aria-pressed": String(this.isAlone(code)),
          onclick: () => app.safely(() => this.show(code)),
        }, DS.swatch(code), h("span", { class: "words cut" }, name),
        h("span", { class: "count" }, counts[code].toLocaleString("en"))),
        this.isAlone(code) && this.own.code === code ? DS.list(app, this.own.rows) : []));
    }

    isAlone(code) {
      return this.app.highlight === code && this.app.colour === "label";
    }

    // The documents that have a label, to look them over, and only them on the map.
    async show(code) {
      const { app } = this;
      app.toggleLabel(code);
      this.own = { code, rows: [] };
      await this.reload();
      app.render();
    }

    async reload() {
      const { code } = this.own;
      if (!this.isAlone(code)) return;
      const rows = [];
      this.app.state.label.forEach((own, row) => { if (own === code) rows.push(row); });
      this.own.rows = await this.app.source.rows(rows.slice(0, LISTED));
    }

    panel() {
      const { app } = this;
      const { state, about } = app;
      const counts = this.counts();
      const n = counts.reduce((sum, count) => sum + count, 0);
      const kinds = counts.filter((count) => count > 0).length;
      const file = h("input", {
        type: "file", accept: ".jsonl", id: "load", "aria-label": "Load labels",
        onchange: (event) => app.safely(() => this.load(event.target.files[0])),
      });
      const button = (id, text, action, attributes = {}) => h("button", {
        id, type: "button", onclick: () => app.safely(action), ...attributes }, text);
      const step = (number, ...children) => [h("h2", {}, `${number}. ${children[0]}`), ...children.slice(1)];
      return [
        about.can_learn ? [
          step(1, "Label a few documents",
            h("p", { class: "faint" }, "Let the page ask for those that help most, or select some "
              + "on the map: click one, or hold Shift and draw around many."),
            this.asking
              ? button("stop", "Stop asking", () => this.stop())
              : button("ask", "Ask me", () => this.ask(), { class: "main" })),
          step(2, "Learn",
            h("p", { class: "faint" }, kinds < 2
              ? "Two different labels are needed before there is something to learn."
              : "Fits a classifier for few labels and colours the map."),
            button("learn", this.busy ? "Learning …" : "Learn", () => this.learn(),
              kinds < 2 || this.busy ? { disabled: "" } : {})),
          step(3, "Take it with you",
            h("p", {}, button("export", "Predictions as CSV", () => app.saveCsv()))),
        ] : [h("p", { class: "faint" }, "This page is a file: labels can be given and saved, and "
          + "docsigma explore learns from them.")],
        h("h2", {}, `${DS.counted(n, "label")} so far`),
        state.names.length > 9 ? h("input", {
          id: "filter", type: "search", placeholder: "Find a label", "aria-label": "Find a label",
          value: this.filter,
          oninput: (event) => {
            this.filter = event.target.value;
            document.getElementById("labels").replaceChildren(...this.list());
          },
        }) : null,
        h("div", { id: "labels" }, this.list()),
        h("p", { class: "row" },
          button("undo", "Undo", () => app.undo.undo(), { title: "Ctrl-Z" }),
          button("redo", "Redo", () => app.undo.redo(), { title: "Ctrl-Shift-Z" }),
          button("save", "Save labels", async () =>
            DS.download("labels.jsonl", await app.source.labels(), "application/jsonl"))),
        h("p", {}, h("label", {}, "Load labels ", file)),
      ];
    }

    async load(file) {
      if (!file) return;
      const lines = await file.text();
      const { n_loaded: n } = await this.app.undo.record(() => this.app.source.load(lines));
      this.app.say(`${DS.counted(n, "label")} loaded.`, "undo");
      this.app.render();
    }
  };
})();
