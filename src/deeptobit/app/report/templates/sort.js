"use strict";
// Headers become buttons: a press sorts by that column, a second one turns the order round.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const status = document.getElementById(table.dataset.status);
  for (const header of table.querySelectorAll("th[data-column]")) {
    const button = document.createElement("button");
    button.type = "button";
    const name = header.querySelector("abbr")?.title ?? header.textContent.trim();
    button.setAttribute("aria-label", `Sort by ${name}`);
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const rising = header.getAttribute("aria-sort") === "descending"
        || (!header.hasAttribute("aria-sort") && header.dataset.column === "0");
      for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const sign = rising ? 1 : -1;
      const key = (row) => row.cells[Number(header.dataset.column)].dataset.key;
      const compare = (first, second) => {
        const a = key(first), b = key(second);
        if (a === "" || b === "") return (a === "") - (b === "");
        const difference = Number(a) - Number(b);
        return sign * (Number.isNaN(difference) ? a.localeCompare(b, undefined, {numeric: true}) : difference);
      };
      body.append(...[...body.rows].sort(compare));
      status.textContent = `Sorted by ${name}, ${rising ? "ascending" : "descending"}.`;
    });
  }
}
// Paper cannot unfold anything.
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});
