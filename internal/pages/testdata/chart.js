(() => { // what the first chart of a run shows now
  const region = document.querySelector(".scroll:has(svg.chart[data-end])"), svg = region.querySelector("svg");
  const box = region.getBoundingClientRect();
  const shown = (selector) => [...svg.querySelectorAll(selector)].filter((e) => e.getAttribute("visibility") !== "hidden");
  const bars = shown(".bar rect").map((r) => [parseFloat(r.getAttribute("x")), parseFloat(r.getAttribute("width"))]);
  const mark = shown("a polygon")[0], link = mark && mark.closest("a");
  const place = (e) => { const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; };
  return {
    focused: document.activeElement === region,
    left: box.left, top: box.top, width: Math.min(box.width, svg.getBoundingClientRect().width),
    bars: bars.length,
    drawn: [...svg.querySelectorAll(".bar rect")].map((r) => r.getAttribute("x") + "/" + r.getAttribute("width")).join(),
    first: bars.length ? bars[0][0] : 0,
    outside: bars.filter(([x, w]) => x < svg.dataset.left - 0.1 || x + w > parseFloat(svg.dataset.right) + 0.1).length,
    ticks: shown("text.axis").map((t) => t.textContent),
    crosshair: shown(".crosshair").length > 0,
    brush: shown(".brush").length > 0,
    readout: region.parentElement.querySelector(".readout").textContent,
    buttons: region.parentElement.querySelectorAll(".toolbar button").length,
    mark: mark ? place(mark) : [], leads: link ? link.getAttribute("href") : "",
    hash: location.hash,
  };
})()
