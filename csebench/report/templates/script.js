"use strict";
// Sorts tables, unfolds the details of a cell below its row, filters claims.
// Without this script tables are as printed, and a cell's link leads to its details below the table.

document.documentElement.classList.add("scripted");

// ---------------------------------------------------------------- sorting

function numberOf(row, place) {
  const text = row.cells[place].dataset.value;
  return text === undefined ? NaN : Number(text);
}

/** Rows of the table's own, not those of unfolded details. */
function ownRows(table) {
  return [...table.tBodies[0].rows].filter((row) => !row.classList.contains("unfolded"));
}

function sort(table, place) {
  const heads = [...table.tHead.rows[0].cells];
  const order = heads[place].getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
  const sign = order === "descending" ? -1 : 1;
  const rows = ownRows(table).sort((a, b) => {
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
  ownRows(table).forEach((row, i) => {
    row.dataset.printed = i;
  });
  [...table.tHead.rows[0].cells].forEach((head, place) => {
    head.querySelector("button").addEventListener("click", () => sort(table, place));
  });
}

// ---------------------------------------------------------------- a cell's details

function copyOf(id) {
  const copy = document.getElementById(id).cloneNode(true);
  copy.removeAttribute("id");
  return copy;
}

/** The details of a cell, with its runs and their commands. */
function detailOf(link) {
  const detail = copyOf(link.hash.slice(1));
  const runs = [...detail.querySelectorAll("a[data-run]")].map((a) => {
    const run = copyOf("run-" + a.dataset.run);
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
  for (const link of row.querySelectorAll("a.cell")) link.setAttribute("aria-expanded", "false");
}

function toggle(link) {
  const row = link.closest("tr");
  const wasOpen = link.getAttribute("aria-expanded") === "true";
  fold(row);
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

for (const link of document.querySelectorAll("a.cell")) {
  link.setAttribute("role", "button");
  link.setAttribute("aria-expanded", "false");
  link.addEventListener("click", (event) => {
    event.preventDefault();
    toggle(link);
  });
}

document.addEventListener("keydown", (event) => {
  const link = event.target.closest("a.cell");
  if (link && event.key === " ") {
    event.preventDefault(); // a button answers the space bar, too
    toggle(link);
  }
});

/** Opens what an address with a # names: a cell's details, or a run. */
function openNamed() {
  const link = [...document.querySelectorAll("a.cell")].find((a) => a.hash === location.hash);
  const run = document.getElementById(location.hash.slice(1));
  if (link && link.getAttribute("aria-expanded") === "false") {
    toggle(link);
    link.scrollIntoView({ block: "center" });
  } else if (run && run.matches("details.run")) {
    for (let at = run; at; at = at.parentElement.closest("details")) at.open = true;
    run.scrollIntoView();
  }
}

window.addEventListener("hashchange", openNamed);
openNamed();

// ---------------------------------------------------------------- filtering claims

for (const form of document.querySelectorAll("form.filter")) {
  const rows = [...document.querySelectorAll("tr[data-paper]")];
  const apply = () => {
    for (const row of rows) {
      row.hidden = [...form.elements].some((own) => own.value && own.dataset.filter && row.dataset[own.dataset.filter] !== own.value);
    }
    const sentences = rows.filter((row) => !row.classList.contains("claim-row"));
    form.querySelector("output").value = `${sentences.filter((row) => !row.hidden).length} of ${sentences.length}`;
  };
  form.addEventListener("change", apply);
  apply();
}
