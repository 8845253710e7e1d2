// Where the page has its data from: the server, or the page itself.
(() => {
  "use strict";
  const DS = (window.DS = window.DS || {});

  // What docsigma/explore/packing.py wrote.
  function unpack(buffer) {
    const size = new DataView(buffer).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
    const kinds = { Float32Array, Uint8Array, Int16Array, Int32Array };
    const arrays = {};
    for (const [name, [kind, start, length]] of Object.entries(header.arrays)) {
      arrays[name] = new kinds[kind](buffer, 4 + size + start, length);
    }
    return { ...header, ...arrays };
  }

  async function ask(path, body) {
    const options = body === undefined ? {} : {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    };
    let answer;
    try {
      answer = await fetch(path, options);
    } catch {
      throw new Error("the program behind this page does not answer: is it running?");
    }
    if (!answer.ok) {
      const found = await answer.json().catch(() => ({}));
      throw new Error(found.detail || `the server answered ${answer.status}`);
    }
    return answer;
  }

  const json = async (path, body) => (await ask(path, body)).json();
  const binary = async (path) => unpack(await (await ask(path)).arrayBuffer());

  const server = {
    about: () => json("about"),
    points: () => binary("points"),
    state: () => binary("state"),
    neighbours: () => binary("neighbours"),
    document: (row) => json(`document/${row}`),
    rows: (rows) => (rows.length
      ? json(`rows?${rows.map((row) => `row=${row}`).join("&")}`) : []),
    search: (text) => json("search", { text }),
    label: (rows, label) => json("labels", { rows, label }),
    load: (lines) => json("labels/load", { lines }),
    proposals: () => json("proposals"),
    learn: () => json("learn", {}),
    labels: async () => (await ask("labels.jsonl")).text(),
    csv: async () => (await ask("predictions.csv")).text(),
  };

  function decode(text) {
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return unpack(bytes.buffer);
  }

  // A page that holds its documents: labels are kept until it is closed.
  function embedded(data) {
    const state = decode(data.state);
    const documents = data.documents;
    const excerpt = (row) => {
      const { id, excerpt, label } = documents[row];
      return { row, id, excerpt, label };
    };
    const set = (row, label) => {
      documents[row].label = label;
      if (label !== null && !state.names.includes(label)) state.names.push(label);
      state.label[row] = label === null ? -1 : state.names.indexOf(label);
    };
    return {
      about: async () => data.about,
      points: async () => decode(data.points),
      state: async () => state,
      document: async (row) => ({
        ...documents[row],
        neighbours: documents[row].neighbours.map((o) => ({ ...excerpt(o.row), ...o })),
      }),
      rows: async (rows) => rows.map(excerpt),
      search: async (text) => {
        const words = text.toLowerCase().split(/\s+/).filter(Boolean);
        const found = documents.map((document, row) => {
          const whole = document.pieces.map((piece) => piece[0]).join("").toLowerCase();
          return [words.filter((word) => whole.includes(word)).length, row];
        }).filter(([n]) => n > 0);
        found.sort((a, b) => b[0] - a[0] || a[1] - b[1]);
        return found.slice(0, 20).map(([, row]) => excerpt(row));
      },
      label: async (rows, label) => rows.forEach((row) => set(row, label)),
      load: async (lines) => {
        const places = new Map(documents.map((document, row) => [document.id, row]));
        const found = lines.split("\n").filter((line) => line.trim())
          .map((line) => JSON.parse(line));
        for (const { id } of found) {
          if (!places.has(id)) throw new Error(`there is no document ${id}`);
        }
        found.forEach(({ id, label }) => set(places.get(id), label));
        return { n_loaded: found.length };
      },
      labels: async () => documents.filter((document) => document.label !== null)
        .map(({ id, label }) => `${JSON.stringify({ id, label })}\n`).join(""),
      csv: async () => data.csv,
    };
  }

  DS.source = () => {
    const held = document.getElementById("data");
    return held ? embedded(JSON.parse(held.textContent)) : server;
  };

  // An element with its texts put in as texts, never as markup.
  DS.h = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name === "style") Object.assign(element.style, value);
      else if (value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.flat(Infinity).filter((child) => child !== null));
    return element;
  };

  DS.download = (name, content, kind) => {
    const blob = content instanceof Blob ? content : new Blob([content], { type: kind });
    const link = DS.h("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
})();
