"use strict";
// Unfolds details, sorts tables, moves between cells with arrow keys, copies, filters claims and findings.
// Without this script <noscript> shows the details below each table, and links lead there. With it, a browser keeps
// them as text, which is parsed when something is unfolded: a page with thousands of details opens fast.

document.documentElement.classList.add("scripted");

// ---------------------------------------------------------------- details that are kept as text

const parsed = new Map();

/** The content of a <noscript> as nodes that are not in the page. */
function contentOf(noscript) {
  if (!parsed.has(noscript)) {
    const template = document.createElement("template");
    template.innerHTML = noscript.textContent;
    addCopyButtons(template.content);
    parsed.set(noscript, template.content);
  }
  return parsed.get(noscript);
}

/** A copy of what an anchor names in the text of a <noscript>; null where it is not there. */
function copyOf(noscript, id) {
  const named = noscript && contentOf(noscript).getElementById(id);
  const copy = named && named.cloneNode(true);
  if (copy) copy.removeAttribute("id");
  return copy;
}

function fill(details) {
  const noscript = details.querySelector(":scope > noscript");
  if (!noscript || details.dataset.filled) return;
  details.append(contentOf(noscript).cloneNode(true));
  details.dataset.filled = "";
}

// `toggle` does not bubble
document.addEventListener("toggle", (event) => event.target.matches("details") && fill(event.target), true);

/** Buttons before the texts that people copy: clones lose listeners, so the document listens. */
function addCopyButtons(content) {
  for (const pre of content.querySelectorAll("pre")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    pre.before(button);
  }
}

async function copyText(button) {
  const pre = button.nextElementSibling;
  try {
    await navigator.clipboard.writeText(pre.textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(pre); // a browser that refuses: the reader copies the selection
    button.textContent = "Selected";
  }
}

// ---------------------------------------------------------------- sorting

function numberOf(row, place) {
  const text = row.cells[place].dataset.value;
  return text === undefined ? NaN : Number(text);
}

/** Rows of a table without those of unfolded details. */
function rowsOf(table) {
  return [...table.tBodies[0].rows].filter((row) => !row.classList.contains("unfolded"));
}

function sort(table, place) {
  const heads = [...table.tHead.rows[0].cells];
  const order = heads[place].getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
  const sign = order === "descending" ? -1 : 1;
  const rows = rowsOf(table).sort((a, b) => {
    const [one, other] = [numberOf(a, place), numberOf(b, place)];
    if (place === 0 || (isNaN(one) && isNaN(other)) || one === other) return a.dataset.printed - b.dataset.printed;
    if (isNaN(one) || isNaN(other)) return isNaN(one) ? 1 : -1; // rows without a value are last in both orders
    return sign * (one - other);
  });
  for (const row of rows) {
    const detail = row.nextElementSibling;
    const unfolded = detail && detail.classList.contains("unfolded") ? [detail] : [];
    table.tBodies[0].append(row, ...unfolded);
  }
  heads.forEach((head, i) => {
    if (i > 0) head.setAttribute("aria-sort", i === place ? order : "none");
  });
}

for (const table of document.querySelectorAll("table.sortable")) {
  rowsOf(table).forEach((row, i) => {
    row.dataset.printed = i;
  });
}

// ---------------------------------------------------------------- details of a cell or a row

/** The details that a link names, with the runs behind them and their commands. */
function detailOf(link) {
  const detail = copyOf(link.closest("section").querySelector("noscript.cells"), link.hash.slice(1));
  const runs = [...detail.querySelectorAll('a[href^="#run-"]')].map((a) => {
    const run = copyOf(document.querySelector("#runs noscript"), a.hash.slice(1));
    a.addEventListener("click", (event) => {
      event.preventDefault();
      run.open = true;
      run.scrollIntoView({ block: "nearest" });
    });
    return run;
  });
  if (runs.length > 0) runs[0].open = true;
  detail.append(...runs);
  return detail;
}

function fold(row) {
  const below = row.nextElementSibling;
  if (below && below.classList.contains("unfolded")) below.remove();
  for (const link of row.querySelectorAll("a.unfolds")) link.setAttribute("aria-expanded", "false");
}

function toggle(link) {
  const row = link.closest("tr");
  const wasOpen = link.getAttribute("aria-expanded") === "true";
  fold(row);
  history.replaceState(null, "", wasOpen ? `#${link.closest("section").id}` : link.hash);
  if (wasOpen) return;
  const below = document.createElement("tr");
  below.className = "unfolded";
  const cell = document.createElement("td");
  cell.colSpan = row.cells.length;
  cell.append(detailOf(link));
  below.append(cell);
  row.after(below);
  link.setAttribute("aria-expanded", "true");
}

for (const link of document.querySelectorAll("a.unfolds")) {
  link.setAttribute("role", "button");
  link.setAttribute("aria-expanded", "false");
  link.tabIndex = -1; // Enter on the table leads to its cells
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a.unfolds");
  const head = event.target.closest(".sortable thead th");
  if (link) {
    event.preventDefault();
    toggle(link);
  } else if (head) {
    sort(head.closest("table"), head.cellIndex);
  } else if (event.target.matches("button.copy")) {
    copyText(event.target);
  }
});

// ---------------------------------------------------------------- arrow keys between cells

const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

function linkAt(rows, row, place) {
  return rows[row] && rows[row].cells[place] && rows[row].cells[place].querySelector("a.unfolds");
}

document.addEventListener("keydown", (event) => {
  const box = event.target.closest(".box");
  if (!box || !box.querySelector(".sortable")) return;
  const rows = rowsOf(box.querySelector(".sortable"));
  const link = event.target.closest("a.unfolds");
  let next = null;
  if (event.target === box && event.key === "Enter") {
    next = box.querySelector("a.unfolds");
  } else if (link && event.key === "Escape") {
    next = box;
  } else if (link && event.key === " ") {
    event.preventDefault(); // a button answers the space bar, too
    toggle(link);
  } else if (link && STEPS[event.key]) {
    const [down, right] = STEPS[event.key];
    let [row, place] = [rows.indexOf(link.closest("tr")) + down, link.closest("td, th").cellIndex + right];
    while (rows[row] && rows[row].cells[place] && !linkAt(rows, row, place)) [row, place] = [row + down, place + right];
    next = linkAt(rows, row, place);
    event.preventDefault();
  }
  if (next) {
    event.preventDefault();
    next.focus();
  }
});

/** Opens what an address with a # names: the details of a cell or a row, or a run. */
function openNamed() {
  const id = decodeURIComponent(location.hash.slice(1));
  const link = id && document.querySelector(`a.unfolds[href="#${CSS.escape(id)}"]`);
  const runs = document.querySelector("#runs details");
  if (link && link.getAttribute("aria-expanded") === "false") {
    toggle(link);
    link.scrollIntoView({ block: "center" });
  } else if (runs && id.startsWith("run-")) {
    fill(runs);
    runs.open = true;
    const run = document.getElementById(id);
    if (run) run.open = true;
    if (run) run.scrollIntoView();
  }
}

window.addEventListener("hashchange", openNamed);
openNamed();

// ---------------------------------------------------------------- search and filter, kept in the address

for (const form of document.querySelectorAll("form.filter")) {
  const items = [...document.querySelectorAll("tbody[data-paper]")];
  const fields = [...form.elements].filter((field) => field.name);
  const apply = () => {
    for (const item of items) {
      item.hidden = fields.some((field) => {
        const [wanted, has] = [field.value.trim(), item.dataset[field.name]];
        return wanted && (has === undefined ? !item.textContent.toLowerCase().includes(wanted.toLowerCase()) : has !== wanted);
      });
    }
    for (const section of document.querySelectorAll("main > section")) {
      section.hidden = form.matches(".active") && !section.querySelector("tbody[data-paper]:not([hidden])");
    }
    form.querySelector("output").value = `${items.filter((item) => !item.hidden).length} of ${items.length}`;
  };
  form.addEventListener("input", () => {
    const state = new URLSearchParams(fields.filter((field) => field.value).map((field) => [field.name, field.value]));
    form.classList.toggle("active", state.size > 0);
    history.replaceState(null, "", `${location.pathname}${state.size ? "?" : ""}${state}`);
    apply();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  const state = new URLSearchParams(location.search);
  for (const field of fields) if (state.has(field.name)) field.value = state.get(field.name);
  form.classList.toggle("active", state.size > 0);
  apply();
}
