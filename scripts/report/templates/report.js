"use strict";
(() => {
const $ = (s, e = document) => e.querySelector(s), all = (s, e = document) => [...e.querySelectorAll(s)];
const root = document.documentElement, table = $("#tasks"), dialog = $("#drawer");
const store = { get(k) { try { return localStorage.getItem(k); } catch { return null; } }, set(k, v) { try { localStorage.setItem(k, v); } catch { /* from a file: nothing is kept */ } } };

const theme = name => { if (name) root.dataset.theme = name; };
theme(store.get("acidtest-theme"));
const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
const flip = () => { const next = dark() ? "light" : "dark"; theme(next); store.set("acidtest-theme", next); };
$("#theme").addEventListener("click", flip);

let details = null;
const detail = id => { details ??= JSON.parse($("#details").textContent); return details[id]; };
const rows = table ? all("tbody tr", table) : [], body = table && $("tbody", table);
const shown = () => all("tbody tr", table).filter(r => !r.hidden);

function open(id, push = true) {
  const html = detail(id);
  if (html === undefined) return;
  $("#title").textContent = id; $("#content").innerHTML = html;
  if (!dialog.open) dialog.showModal();
  $(".body", dialog).scrollTop = 0; dialog.scrollTop = 0;
  if (push) history.replaceState(null, "", "#task=" + encodeURIComponent(id));
}
function close() { dialog.close(); }
dialog.addEventListener("close", () => {
  const id = $("#title").textContent; history.replaceState(null, "", "#");
  const row = rows.find(r => r.dataset.id === id); if (row && !row.hidden) row.focus();
});
dialog.addEventListener("click", e => { if (e.target === dialog) close(); });
$("#close").addEventListener("click", close);
function turn(by) {
  const list = shown(), at = list.findIndex(r => r.dataset.id === $("#title").textContent), next = list[at + by];
  if (next) open(next.dataset.id);
}
$("#next").addEventListener("click", () => turn(1)); $("#prev").addEventListener("click", () => turn(-1));

document.addEventListener("click", e => {
  const copy = e.target.closest("[data-copy]");
  if (copy) { navigator.clipboard?.writeText(copy.previousElementSibling.textContent); copy.textContent = "copied"; return; }
  const opener = e.target.closest("[data-open]");
  if (opener) { e.preventDefault(); open(opener.dataset.open); }
});

if (table) {
  const state = { text: "", decision: "", flag: "", paid: "" };
  const count = $("#count");
  function apply() {
    let n = 0; const words = state.text.toLowerCase().split(/\s+/).filter(Boolean);
    for (const r of rows) {
      const d = r.dataset;
      const ok = (!state.decision || d.decision === state.decision) && (!state.flag || d.flags.split(" ").includes(state.flag)) && (!state.paid || d.best === state.paid || (state.paid === "any" && d.best)) && words.every(w => d.text.includes(w));
      r.hidden = !ok; n += ok;
    }
    count.textContent = n + " of " + rows.length + " tasks";
  }
  $("#search").addEventListener("input", e => { state.text = e.target.value; apply(); });
  $("#flag").addEventListener("change", e => { state.flag = e.target.value; apply(); });
  $("#paid").addEventListener("change", e => { state.paid = e.target.value; apply(); });
  all(".pick button").forEach(b => b.addEventListener("click", () => {
    state.decision = state.decision === b.dataset.decision ? "" : b.dataset.decision;
    all(".pick button").forEach(x => x.setAttribute("aria-pressed", String(x.dataset.decision === state.decision)));
    apply();
  }));
  all("th button", table).forEach(b => b.addEventListener("click", () => {
    const th = b.parentElement, up = th.getAttribute("aria-sort") !== "ascending", i = th.cellIndex, numeric = th.classList.contains("n");
    all("th", table).forEach(x => x.removeAttribute("aria-sort")); th.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = r => { const v = r.cells[i].dataset.v ?? r.cells[i].textContent.trim(); return numeric ? (v === "" ? null : +v) : v; };
    const pairs = rows.map(r => [key(r), r]);
    pairs.sort(([a], [b]) => a === b ? 0 : a === null ? 1 : b === null ? -1 : (a < b ? -1 : 1) * (up ? 1 : -1));
    body.append(...pairs.map(p => p[1]));
  }));
  body.addEventListener("click", e => { const r = e.target.closest("tr"); if (r && !getSelection().toString()) open(r.dataset.id); });
  apply();
}

document.addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const typing = /INPUT|SELECT|TEXTAREA/.test(e.target.tagName);
  if (typing) { if (e.key === "Escape") e.target.blur(); return; }
  if (dialog.open) { if (e.key === "j" || e.key === "ArrowRight") turn(1); else if (e.key === "k" || e.key === "ArrowLeft") turn(-1); return; }
  if (e.key === "/" && table) { e.preventDefault(); $("#search").focus(); }
  else if (e.key === "t") flip();
  else if (table && (e.key === "j" || e.key === "k" || e.key === "ArrowDown" || e.key === "ArrowUp")) {
    const list = shown(), at = list.indexOf(document.activeElement), down = e.key === "j" || e.key === "ArrowDown";
    if (at < 0 && e.key.startsWith("Arrow")) return;
    e.preventDefault(); (list[at < 0 ? 0 : at + (down ? 1 : -1)] || list[0])?.focus();
  } else if (e.key === "Enter" && document.activeElement?.dataset.id) open(document.activeElement.dataset.id);
});
const wanted = decodeURIComponent((location.hash.match(/^#task=(.+)/) || [])[1] || "");
if (wanted) open(wanted, false);
root.dataset.ready = String(Math.round(performance.now()));
})();
