"use strict";
// Sections that have all words, the best first; nothing of a page is taken for HTML.
const sections = JSON.parse(document.getElementById("data").textContent);
const box = document.getElementById("q"), found = document.getElementById("found");
const made = (name, text, more) => Object.assign(document.createElement(name), { textContent: text }, more);
function search() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  document.getElementById("lists").hidden = words.length > 0;
  if (!words.length) return found.replaceChildren();
  // A plural finds the singular, as in manual.py.
  const ways = words.map(word => new RegExp("(?<![\\p{L}\\p{N}])" + word.replace(/([a-z]{2,}[^s])s$/, "$1").replace(/[^\p{L}\p{N}]/gu, "\\$&"), "giu"));
  const ranked = [];
  for (const [page, title, heading, anchor, text] of sections) {
    const above = `${page} ${heading}`, count = one => ways.reduce((sum, way) => sum + (one.match(way) || []).length, 0);
    if (ways.every(way => (above + "\n" + text).search(way) >= 0)) {
      ranked.push([10 * ways.filter(way => above.search(way) >= 0).length + Math.min(10, count(text)), page, title, heading, anchor, text]);
    }
  }
  ranked.sort((one, other) => other[0] - one[0]);
  const total = `${ranked.length} section${ranked.length === 1 ? "" : "s"} found`;
  found.replaceChildren(made("p", ranked.length ? total : "No section has all of these words: try fewer."), ...ranked.slice(0, 30).map(row => {
    const [, page, title, heading, anchor, text] = row, place = document.createElement("article");
    const lines = text.split("\n"), held = line => ways.filter(way => line.search(way) >= 0).length;
    const best = lines.reduce((best, line) => held(line) > held(best) ? line : best, lines[0] || "");
    const from = Math.max(0, best.search(ways.find(way => best.search(way) >= 0) || /^/) - 60);
    place.append(made("a", heading === title ? title : `${title}: ${heading}`, { href: `${page}.html#${anchor}` }), made("p", from ? best.slice(from, from + 180).replace(/^\S*/, "…") : best.slice(0, 180)));
    return place;
  }));
}
box.value = new URLSearchParams(location.search).get("q") || "";
box.addEventListener("input", search);
search();
