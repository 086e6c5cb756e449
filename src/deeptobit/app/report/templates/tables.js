"use strict";
// Tables sort by a press on a heading, filter by a word and download as CSV; figures as SVG.

function make(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function save(name, text, type) {
  const link = make("a", {href: URL.createObjectURL(new Blob([text], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const nameOf = (header) => header.querySelector("abbr")?.title ?? header.textContent.trim();

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], status = document.getElementById(table.dataset.status);
  const headers = [...table.querySelectorAll("th[data-column]")], names = headers.map(nameOf);
  const first = Number(table.dataset.first ?? Infinity);
  let wanted = "", all = false;

  // Rows that hold the word; of a long table only the first, until all are asked for.
  const show = () => {
    let shown = 0;
    for (const row of body.rows) {
      const holds = row.textContent.toLowerCase().includes(wanted);
      row.hidden = !holds || (!all && !wanted && shown >= first);
      shown += holds;
    }
    if (more) more.hidden = all || wanted !== "" || body.rows.length <= first;
  };
  const more = first < body.rows.length ? make("button", {type: "button", className: "more", textContent: `Show all ${body.rows.length}`}) : null;
  more?.addEventListener("click", () => { all = true; show(); });
  if (more) table.after(more);

  const sort = (header, rising) => {
    for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", rising ? "ascending" : "descending");
    const sign = rising ? 1 : -1;
    const key = (row) => row.cells[Number(header.dataset.column)].dataset.key;
    const compare = (one, other) => {
      const a = key(one), b = key(other);
      if (a === "" || b === "") return (a === "") - (b === "");
      const difference = Number(a) - Number(b);
      return sign * (Number.isNaN(difference) ? a.localeCompare(b, undefined, {numeric: true}) : difference);
    };
    body.append(...[...body.rows].sort(compare));
    status.textContent = `Sorted by ${names[headers.indexOf(header)]}, ${rising ? "ascending" : "descending"}.`;
    show();
  };
  for (const header of headers) {
    const button = make("button", {type: "button"}, ...header.childNodes);
    button.setAttribute("aria-label", `Sort by ${names[headers.indexOf(header)]}`);
    header.append(button);
    button.addEventListener("click", () => sort(header, header.getAttribute("aria-sort") === "descending"
      || (!header.hasAttribute("aria-sort") && header.dataset.column === "0")));
  }

  // The line above the table.
  const filter = make("input", {type: "search"});
  filter.addEventListener("input", () => { wanted = filter.value.trim().toLowerCase(); show(); });
  const order = make("select", {}, ...names.map((name, place) => make("option", {value: String(place), textContent: name})));
  order.addEventListener("change", () => sort(headers[Number(order.value)], order.value === "0"));
  const csv = make("button", {type: "button", textContent: "Download CSV"});
  csv.addEventListener("click", () => {
    // A cell that begins like a formula stays text in a spreadsheet.
    const cell = (text) => `"${(/^[=@+\t]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text).replaceAll('"', '""')}"`;
    const rows = [...body.rows].map((row) => [...row.cells].map((one) => (one.firstChild?.nodeValue ?? one.textContent).trim().replace(/\u2212/g, "-")));
    save(`${table.id}.csv`, [names, ...rows].map((row) => row.map(cell).join(",")).join("\r\n"), "text/csv");
  });
  const find = make("label", {hidden: body.rows.length < 6}, "Filter ", filter);
  document.querySelector(`.tools[data-for="${table.id}"]`)?.append(
    find, make("label", {className: "narrow-only"}, "Sort by ", order), csv);
  show();
}

// A figure as a file of its own, with the colours that it has on the page.
for (const figure of document.querySelectorAll("figure")) {
  const svg = figure.querySelector("svg");
  if (!svg) continue;
  const button = make("button", {type: "button", className: "save", textContent: "SVG"});
  button.setAttribute("aria-label", `Save as SVG: ${(svg.getAttribute("aria-label") ?? "figure").slice(0, 80)}`);
  button.addEventListener("click", () => {
    const colours = getComputedStyle(document.documentElement);
    const copy = svg.cloneNode(true);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("xmlns:xlink", "http://www.w3.org/1999/xlink");
    copy.setAttribute("style", `color: ${colours.getPropertyValue("--text")}; background: ${colours.getPropertyValue("--card")}; font-family: sans-serif`);
    const text = new XMLSerializer().serializeToString(copy).replace(/var\((--[a-z]+)\)/g, (_, name) => colours.getPropertyValue(name).trim());
    save(`${figure.querySelector("figcaption")?.textContent.trim().replace(/[^\w-]+/g, "_") || figure.closest("section")?.id || "figure"}.svg`, text, "image/svg+xml");
  });
  figure.append(button);
}

// Paper cannot unfold anything.
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});
