"use strict";
// The button appears only where it works: copying needs a secure context, which a page opened as a file may not be.
const copy = document.getElementById("copy");
if (copy && navigator.clipboard) {
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById("command").textContent);
    copy.textContent = "Copied";
  });
}
// A link to a violation must show it, and paper has no way to open anything.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
