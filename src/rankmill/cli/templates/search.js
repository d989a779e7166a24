"use strict";
// Sections that have all words, or else most of them, the best first, as in manual.py; nothing of a page is taken for HTML.
const { sections, alike, small } = JSON.parse(document.getElementById("data").textContent);
const box = document.getElementById("q"), found = document.getElementById("found");
const made = (name, text, more) => Object.assign(document.createElement(name), { textContent: text }, more);
function search() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  document.getElementById("lists").hidden = words.length > 0;
  if (!words.length) return found.replaceChildren();
  const telling = words.filter(word => !small.includes(word));
  const pattern = some => new RegExp("(?<![\\p{L}\\p{N}])(?:" + some.map(one => one.replace(/[^\p{L}\p{N}]/gu, "\\$&")).join("|") + ")", "giu");
  const ways = (telling.length ? telling : words).map(word => word.replace(/([a-z]{2,}[^s])s$/, "$1")).map(word => {
    const groups = alike.filter(group => group.some(one => word.startsWith(one)));
    return [pattern([word]), pattern([word, ...groups.flat()])];
  });
  const has = (text, way) => text.search(way) >= 0, total = (list, one) => list.reduce((sum, each) => sum + one(each), 0);
  let ranked = [];
  for (const [page, title, heading, anchor, above, text] of sections) {
    const held = ways.filter(way => has(`${above}\n${text}`, way[1])), kinds = held.flat();
    const inside = total(kinds, kind => (text.match(kind) || []).length);
    ranked.push([held.length, 10 * total(kinds, kind => has(above, kind)) + Math.min(20, inside), page, title, heading, anchor, text]);
  }
  const most = Math.max(1, ...ranked.map(row => row[0])), all = most === ways.length;
  ranked = ranked.filter(row => row[0] === most).sort((one, other) => other[1] - one[1]);
  const count = `${ranked.length} section${ranked.length === 1 ? "" : "s"} ${all ? "found" : "with some of these words"}`;
  found.replaceChildren(made("p", ranked.length ? count : "No section has any of these words."), ...ranked.slice(0, 30).map(row => {
    const [, , page, title, heading, anchor, text] = row, place = document.createElement("article");
    const lines = text.split("\n"), held = line => ways.filter(way => has(line, way[1])).length;
    const best = lines.reduce((best, line) => held(line) > held(best) ? line : best, lines[0] || "");
    const from = Math.max(0, best.search((ways.find(way => has(best, way[1])) || [0, /^/])[1]) - 60);
    place.append(made("a", heading === title ? title : `${title}: ${heading}`, { href: `${page}.html#${anchor}` }), made("p", from ? best.slice(from, from + 180).replace(/^\S*/, "…") : best.slice(0, 180)));
    return place;
  }));
}
box.value = new URLSearchParams(location.search).get("q") || "";
box.addEventListener("input", search);
search();
