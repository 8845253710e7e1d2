// Mouse, touch and keys on the map.
(() => {
  "use strict";
  const DS = (window.DS = window.DS || {});
  // Pixels that a pointer may move and still click, and that a click reaches.
  const STILL = 4;
  const REACH = 14;

  DS.listen = (map, { pick, choose, point }) => {
    const { canvas } = map;
    const held = new Map();
    let lasso = false;
    let start = null;
    let spread = 0;
    // A lasso ends where it began, so that it matters how far it went in between.
    let still = true;

    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [(event.clientX - box.left) * map.ratio, (event.clientY - box.top) * map.ratio];
    };
    const distance = () => {
      const [a, b] = [...held.values()];
      return Math.hypot(a[0] - b[0], a[1] - b[1]);
    };

    canvas.addEventListener("pointerdown", (event) => {
      if (event.button > 0) return;
      canvas.setPointerCapture(event.pointerId);
      held.set(event.pointerId, at(event));
      start = at(event);
      still = held.size === 1;
      if (held.size === 2) spread = distance();
      map.path = held.size === 1 && (lasso || event.shiftKey) ? [start] : null;
    });

    canvas.addEventListener("pointerleave", () => point(-1));

    canvas.addEventListener("pointermove", (event) => {
      const now = at(event);
      const before = held.get(event.pointerId);
      if (!before) {
        point(map.nearest(now[0], now[1], REACH * map.ratio));
        return;
      }
      held.set(event.pointerId, now);
      if (Math.hypot(now[0] - start[0], now[1] - start[1]) > STILL * map.ratio) still = false;
      if (held.size === 2) {
        const wide = distance();
        const [a, b] = [...held.values()];
        map.zoom(wide / Math.max(1, spread), (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
        spread = wide;
      } else if (map.path) {
        map.path.push(now);
        map.draw();
      } else {
        map.move(now[0] - before[0], now[1] - before[1]);
      }
    });

    const end = (event) => {
      if (!held.delete(event.pointerId) || event.type === "pointercancel") {
        map.path = null;
        return;
      }
      const now = at(event);
      const path = map.path;
      map.path = null;
      map.draw();
      if (path && path.length > 2 && !still) choose(map.inside(path));
      else if (still && held.size === 0) {
        const row = map.nearest(now[0], now[1], REACH * map.ratio);
        pick(row, event.shiftKey || event.ctrlKey || event.metaKey);
      }
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);

    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      map.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), ...at(event));
    }, { passive: false });

    canvas.addEventListener("keydown", (event) => {
      const step = 60 * map.ratio;
      const moves = {
        ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step],
      };
      if (moves[event.key]) map.move(...moves[event.key]);
      else if (event.key === "+" || event.key === "=") map.zoom(1.4);
      else if (event.key === "-") map.zoom(1 / 1.4);
      else if (event.key === "Enter") {
        pick(map.nearest(map.width / 2, map.height / 2, Infinity), event.shiftKey);
      } else return;
      event.preventDefault();
    });

    return {
      toggle(on = !lasso) {
        lasso = on;
        canvas.classList.toggle("lasso", lasso);
        return lasso;
      },
    };
  };
})();
