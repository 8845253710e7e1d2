// Labels: give them, learn from them, and be asked for the ones that help most.
(() => {
  "use strict";
  const DS = (window.DS = window.DS || {});
  const { h } = DS;
  // Labels between two fits while the page asks.
  const ROUND = 10;

  DS.Learning = class {
    constructor(app) {
      this.app = app;
      this.asked = [];
      this.given = 0;
      this.busy = false;
      const form = document.getElementById("labelling");
      this.input = document.getElementById("new-label");
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        const label = this.input.value.trim();
        if (!label) this.input.focus();
        else this.label(label);
      });
      document.getElementById("unlabel").addEventListener("click", () => this.label(null));
      document.getElementById("skip").addEventListener("click", () => this.next());
    }

    get asking() {
      return this.asked.length > 0;
    }

    async label(label) {
      const { app } = this;
      if (!app.selected.length) return;
      const rows = app.selected;
      await app.source.label(rows, label);
      this.input.value = "";
      this.given += 1;
      await app.readState();
      const what = rows.length === 1 ? "1 document" : `${rows.length} documents`;
      app.say(label === null ? `Label taken away from ${what}.` : `${what} labelled “${label}”.`);
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
      const { selected, state } = this.app;
      const n = selected.length;
      document.getElementById("labelling").hidden = n === 0;
      const skip = document.getElementById("skip");
      skip.hidden = !this.asking;
      const asked = this.asking && n === 1 && selected[0] === this.asked[0].row;
      const what = n === 1 ? "1 document" : `${n.toLocaleString("en")} documents`;
      document.getElementById("chosen").textContent =
        asked ? `Which label has this document, ${this.asked.length} to go?` : `Label ${what}:`;
      document.getElementById("chips").replaceChildren(...state.names.map((name, number) =>
        h("button", { type: "button", "data-label": name, onclick: () => this.app.safely(() => this.label(name)) },
          DS.swatch(number), name, number < 9 ? h("kbd", {}, String(number + 1)) : null)));
    }

    panel() {
      const { app } = this;
      const { state, about } = app;
      const n = state.label.reduce((sum, code) => sum + (code >= 0), 0);
      const kinds = new Set(state.label.filter((code) => code >= 0)).size;
      const counts = state.names.map((_, code) =>
        state.label.reduce((sum, found) => sum + (found === code), 0));
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
        h("h2", {}, `${n.toLocaleString("en")} labels so far`),
        state.names.map((name, code) => h("button", {
          class: "topic", type: "button",
          "aria-pressed": String(app.highlight === code && app.colour === "label"),
          onclick: () => app.toggleLabel(code),
        }, DS.swatch(code), h("span", { class: "words" }, name),
        h("span", { class: "count" }, String(counts[code])))),
        h("p", { class: "row" },
          button("save", "Save labels", async () =>
            DS.download("labels.jsonl", await app.source.labels(), "application/jsonl"))),
        h("p", {}, h("label", {}, "Load labels ", file)),
      ];
    }

    async load(file) {
      if (!file) return;
      const { n_loaded: n } = await this.app.source.load(await file.text());
      await this.app.readState();
      this.app.say(`${n} labels loaded.`);
      this.app.render();
    }
  };
})();
