// Changes of labels, each of which can be undone and done again.
(() => {
  "use strict";
  const DS = (window.DS = window.DS || {});

  DS.Undo = class {
    constructor(app) {
      this.app = app;
      this.done = [];
      this.undone = [];
    }

    labels() {
      const { label, names } = this.app.state;
      return Array.from(label, (code) => (code < 0 ? null : names[code]));
    }

    // Do what changes labels, and remember which rows it changed.
    async record(action) {
      const before = this.labels();
      const result = await action();
      await this.app.readState();
      const after = this.labels();
      const rows = [];
      for (let row = 0; row < after.length; row++) if (after[row] !== before[row]) rows.push(row);
      if (rows.length) {
        this.done.push({ rows, before: rows.map((row) => before[row]), after: rows.map((row) => after[row]) });
        this.undone = [];
      }
      return result;
    }

    undo() {
      return this.go(this.done, this.undone, "before", "Undone");
    }

    redo() {
      return this.go(this.undone, this.done, "after", "Done again");
    }

    async go(from, to, side, word) {
      const { app } = this;
      const change = from.at(-1);
      if (!change) {
        app.say(word === "Undone" ? "There is nothing to undo." : "There is nothing to do again.");
        return;
      }
      // The program takes one label for many rows.
      const groups = new Map();
      change.rows.forEach((row, i) => {
        const label = change[side][i];
        if (!groups.has(label)) groups.set(label, []);
        groups.get(label).push(row);
      });
      for (const [label, rows] of groups) await app.source.label(rows, label);
      from.pop();
      to.push(change);
      await app.readState();
      await app.select(app.selected, { tab: null });
      app.say(`${word}: ${DS.counted(change.rows.length, "label")}.`);
    }
  };

  DS.counted = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;
})();
