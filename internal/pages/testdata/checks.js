(() => { // the checks of pages: functions that return what is wrong, as sentences
  const all = (selector) => [...document.querySelectorAll(selector)];
  const words = (e) => `<${e.localName}> “${(e.getAttribute("aria-label") || e.textContent).trim().replace(/\s+/g, " ").slice(0, 60)}”`;
  // Elements for screen readers only are one pixel wide.
  const seen = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && e.getBoundingClientRect().width > 1;
  const scrolls = (e) => {
    for (let p = e.parentElement; p && p !== document.body; p = p.parentElement) {
      if (["auto", "scroll"].includes(getComputedStyle(p).overflowX)) return p;
    }
    return null;
  };

  return {
    // What is folded away is checked as well.
    unfold: () => { for (const d of all("details")) d.open = true; return []; },

    links: () => all('a[href^="#"]').filter((a) => !document.getElementById(decodeURIComponent(a.getAttribute("href").slice(1))))
      .map((a) => `${words(a)} leads to ${a.getAttribute("href")}, which is not on the page`),

    ids: () => {
      const times = new Map();
      for (const e of all("[id]")) times.set(e.id, (times.get(e.id) || 0) + 1);
      return [...times].filter(([, n]) => n > 1).map(([id, n]) => `the id ${id} occurs ${n} times`);
    },

    // A table or a chart may be wider than the window only in a region that scrolls, and that a
    // keyboard can reach.
    width: (window) => {
      const page = document.scrollingElement.scrollWidth;
      const found = page > window ? [`the page is ${page} px wide`] : [];
      for (const e of all("body *")) {
        if (!seen(e) || e.ownerSVGElement || e.getBoundingClientRect().right <= window + 0.5) continue;
        const region = scrolls(e);
        if (!region) found.push(`${words(e)} ends ${Math.round(e.getBoundingClientRect().right - window)} px beyond the window`);
        else if (region.tabIndex < 0) found.push(`${words(e)} is in a region that the keyboard cannot scroll`);
      }
      return found.slice(0, 5);
    },

    // What a reader sees, each with its place on the page. Of a picture that exists wide and narrow,
    // one is shown; the tools of a chart exist with scripts only.
    shown: () => all("h1, h2, h3, h4, table, caption, tbody th, tbody td, svg, a, summary, p, li, dt, dd, pre")
      .filter((e) => !e.closest(".sequence, .toolbar, .readout, .swipe")).map((e, n) => [e, n])
      .filter(([e]) => seen(e)).map(([e, n]) => `${n}: ${words(e)}`),
  };
})()
