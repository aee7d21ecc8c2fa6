// The charts can be zoomed: by dragging over a stretch of time, by buttons, and by keys. All charts of
// the page share their time axis. Without this script, the charts show the whole run.
{
  const svgNS = "http://www.w3.org/2000/svg";
  const charts = [...document.querySelectorAll("svg.chart[data-end]")];
  const number = (e, name) => parseFloat(e.getAttribute(name));
  const make = (name, attributes, parent) => {
    const e = document.createElementNS(svgNS, name);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    parent.append(e);
    return e;
  };
  const show = (e, on) => (on ? e.removeAttribute("visibility") : e.setAttribute("visibility", "hidden"));
  const pad = (n, width) => String(n).padStart(width, "0");
  const clock = (s, step) => {
    const digits = step >= 1 ? 0 : step >= 0.1 ? 1 : step >= 0.01 ? 2 : 3;
    if (s < 60) return s.toFixed(digits) + " s";
    const whole = Math.floor(s + 1e-9), rest = (s % 60).toFixed(digits).padStart(digits ? 3 + digits : 2, "0");
    return whole < 3600 ? `${Math.floor(whole / 60)}m${rest}s` : `${Math.floor(whole / 3600)}h${pad(Math.floor(whole / 60) % 60, 2)}m${rest}s`;
  };
  const steps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200];

  const end = charts.length ? number(charts[0], "data-end") : 0;
  const least = Math.min(end, 0.02); // the shortest stretch to zoom to, in seconds
  let from = 0, to = end;
  const views = [];

  function prepare(svg, index) {
    const left = number(svg, "data-left"), right = number(svg, "data-right");
    const perSecond = (right - left) / end;
    const inTime = (x) => x >= left - 0.05;
    const moves = []; // functions that place an element anew
    const scale = () => end / (to - from);
    const map = (x) => left + ((x - left) - from * perSecond) * scale();
    const clip = make("clipPath", { id: `plot-${index}` }, svg);
    make("rect", { x: left, y: 0, width: right - left, height: number(svg, "data-bottom") + 30 }, clip);
    const axis = make("g", {}, svg);
    for (const e of svg.querySelectorAll("rect, text, polygon, path")) {
      if (e.closest("defs, clipPath")) continue;
      if (e.matches(".grid, .axis")) {
        moves.push(() => show(e, to - from >= end));
      } else if (e.matches("rect") && inTime(number(e, "x"))) {
        const x = number(e, "x"), w = number(e, "width");
        const drawn = [e.getAttribute("x"), e.getAttribute("width")];
        moves.push(() => {
          if (to - from >= end) { // no rounding
            show(e, true);
            e.setAttribute("x", drawn[0]);
            e.setAttribute("width", drawn[1]);
            return;
          }
          const a = Math.max(left, map(x)), b = Math.min(right, map(x + w));
          show(e, b > a);
          e.setAttribute("x", a);
          e.setAttribute("width", Math.max(1, b - a));
        });
      } else if (e.matches("text.label, text.state-label")) {
        const x = number(e, "x");
        moves.push(() => { show(e, map(x) >= left && map(x) <= right); e.setAttribute("x", map(x)); });
      } else if (e.matches("polygon, .tick")) {
        const x = parseFloat((e.getAttribute("points") || "").split(" ")[2] || e.getAttribute("d").slice(1));
        moves.push(() => { show(e, map(x) >= left - 1 && map(x) <= right + 1); e.setAttribute("transform", `translate(${map(x) - x} 0)`); });
      } else if (e.matches(".speed")) {
        const g = document.createElementNS(svgNS, "g"); // the clip must not be scaled with the line
        e.replaceWith(g);
        g.append(e);
        g.setAttribute("clip-path", `url(#plot-${index})`);
        moves.push(() => e.setAttribute("transform", `matrix(${scale()} 0 0 1 ${left - (left + from * perSecond) * scale()} 0)`));
      }
    }
    const bars = [...svg.querySelectorAll("[data-server]")].map((lane) => ({
      server: lane.dataset.server,
      bars: [...lane.querySelectorAll(".bar")].map((b) => ({ from: parseFloat(b.dataset.from), title: b.querySelector("title").textContent })),
    }));
    const cross = make("path", { class: "crosshair", visibility: "hidden" }, svg);
    const brush = make("rect", { class: "brush", y: 0, height: number(svg, "data-bottom"), visibility: "hidden" }, svg);
    const readout = document.createElement("p");
    readout.className = "readout";
    const region = svg.closest(".scroll");
    region.after(readout);
    const view = { svg, left, right, region, bars, cross, brush, readout };
    view.draw = () => {
      for (const move of moves) move();
      axis.replaceChildren();
      if (to - from >= end) return;
      const step = steps.find((s) => (to - from) / s <= 10) || steps[steps.length - 1];
      for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
        const x = left + ((t - from) / (to - from)) * (right - left);
        make("path", { class: "grid", d: `M${x} 6V${number(svg, "data-bottom")}` }, axis);
        make("text", { class: "axis", x, y: number(svg, "data-bottom"), dy: 16, "text-anchor": "middle" }, axis).textContent = clock(t, step);
      }
    };
    views.push(view);
    listen(view);
    toolbar(view);
  }

  function zoom(a, b) {
    const width = Math.min(end, Math.max(least, b - a));
    from = Math.min(Math.max(0, (a + b - width) / 2), end - width);
    to = from + width;
    for (const v of views) v.draw();
  }
  const closer = (factor) => { const middle = (from + to) / 2, half = ((to - from) / 2) * factor; zoom(middle - half, middle + half); };
  const pan = (part) => { const by = (to - from) * part; zoom(Math.max(0, Math.min(from + by, end - (to - from))), Math.max(to - from, Math.min(to + by, end))); };
  const actions = { "+": () => closer(0.5), "=": () => closer(0.5), "-": () => closer(2), ArrowLeft: () => pan(-0.25), ArrowRight: () => pan(0.25), "0": () => zoom(0, end) };

  function listen(v) {
    const at = (event) => {
      const box = v.svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * v.svg.viewBox.baseVal.width;
      return Math.min(Math.max(x, v.left), v.right);
    };
    const time = (x) => from + ((x - v.left) / (v.right - v.left)) * (to - from);
    let start = null;
    v.region.addEventListener("keydown", (event) => {
      const act = actions[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key.startsWith("Arrow") && to - from >= end) return; // then the keys scroll
      event.preventDefault();
      act();
    });
    v.svg.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" || event.button !== 0 || event.target.closest("a")) return; // a finger scrolls
      start = at(event);
      event.preventDefault();
      v.region.focus({ preventScroll: true });
    });
    v.svg.addEventListener("pointermove", (event) => {
      const x = at(event), t = time(x);
      show(v.cross, true);
      v.cross.setAttribute("d", `M${x} 0V${v.svg.dataset.bottom}`);
      const told = v.bars.map((l) => { const b = l.bars.findLast((b) => b.from <= t); return b && l.server + ": " + b.title; }).filter(Boolean);
      v.readout.textContent = [clock(t, (to - from) / 100), ...told].join(" · ");
      show(v.brush, start !== null);
      if (start === null) return;
      v.brush.setAttribute("x", Math.min(start, x));
      v.brush.setAttribute("width", Math.abs(x - start));
    });
    addEventListener("pointerup", (event) => {
      if (start === null) return;
      const a = time(start), b = time(at(event));
      start = null;
      show(v.brush, false);
      if (Math.abs(b - a) > (to - from) / 200) zoom(Math.min(a, b), Math.max(a, b));
    });
    v.svg.addEventListener("pointerleave", () => { show(v.cross, false); v.readout.textContent = ""; });
  }

  function toolbar(v) {
    const bar = document.createElement("p");
    bar.className = "toolbar";
    for (const [key, sign, name] of [["+", "+", "Zoom in"], ["-", "−", "Zoom out"], ["ArrowLeft", "◀", "Earlier"], ["ArrowRight", "▶", "Later"], ["0", "Whole run", "Whole run"]]) {
      const b = document.createElement("button");
      b.type = "button";
      b.textContent = sign;
      b.title = name;
      b.setAttribute("aria-label", name);
      b.addEventListener("click", () => actions[key]());
      bar.append(b);
    }
    bar.append(" Drag over the chart to zoom; with the chart in focus, +, −, arrows and 0 work too.");
    v.region.before(bar);
  }

  charts.forEach(prepare);
}
