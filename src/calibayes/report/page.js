"use strict";
for (const field of document.querySelectorAll("[data-filters]")) {
  const rows = [...document.querySelectorAll("#" + field.dataset.filters + " tbody tr")];
  const status = document.getElementById(field.id + "-count");
  field.closest(".search").hidden = false;
  field.addEventListener("input", () => {
    const terms = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !terms.every((term) => text.includes(term));
      shown += row.hidden ? 0 : 1;
    }
    status.textContent = terms.length ? shown + " of " + rows.length : "";
  });
}
for (const button of document.querySelectorAll("[data-copies]")) {
  const code = document.getElementById(button.dataset.copies);
  button.hidden = false;
  button.addEventListener("click", async () => {
    getSelection().selectAllChildren(code);
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2500);
  });
}
