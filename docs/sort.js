// A click on a heading of the tables of answers, on the first page of a scale, sorts the rows by that column.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("article table")) {
    const headings = [...table.querySelectorAll("thead th")];
    if (!headings.some((heading) => heading.textContent.trim() === "answers here")) continue;
    headings.forEach((heading, column) => {
      if (heading.textContent.trim() === "") heading.setAttribute("aria-label", "table or figure");
      heading.setAttribute("aria-sort", "none");
      heading.tabIndex = 0;
      const sort = () => sortRows(table, headings, column);
      heading.addEventListener("click", sort);
      heading.addEventListener("keydown", (event) => {
        if (!["Enter", " "].includes(event.key)) return;
        event.preventDefault(); // Space would scroll the page
        sort();
      });
    });
  }
});

function sortRows(table, headings, column) {
  const descending = headings[column].getAttribute("aria-sort") === "ascending";
  headings.forEach((heading) => heading.setAttribute("aria-sort", "none"));
  headings[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
  const text = (row) => row.cells[column].textContent.trim();
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => text(a).localeCompare(text(b), "en", { numeric: true }));
  if (descending) rows.reverse();
  table.tBodies[0].append(...rows);
}
