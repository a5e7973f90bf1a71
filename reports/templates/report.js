"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const rows = all(".row");
  const buttons = all(".filter");
  const level = document.getElementById("level");
  const search = document.getElementById("search");

  // The row of a mutant shows everything at once: it has nothing to open.
  const open = (row, on) => {
    if (row.querySelector(".more") === null) return;
    row.querySelector(".more").classList.toggle("open", on);
    row.querySelector(".toggle").setAttribute("aria-expanded", String(on));
  };
  const isOpen = (row) => row.querySelector(".more")?.classList.contains("open") ?? false;

  // The transcript is not searched: a word of it would match nearly every row.
  const words = new Map(rows.map((row) => {
    const said = all(".line, .sentence, .because, .check h5, .check > .quiet", row);
    const names = all(".by li", row).map((check) => check.title);
    return [row, [...said.map((element) => element.textContent), ...names].join(" ").toLowerCase()];
  }));

  const filter = () => {
    const pressed = buttons.filter((button) => button.getAttribute("aria-pressed") === "true");
    const verdicts = new Set(pressed.map((button) => button.dataset.verdict));
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const fits = (verdicts.size === 0 || verdicts.has(row.dataset.verdict))
        && (level === null || level.value === "" || level.value === row.dataset.level)
        && wanted.every((word) => words.get(row).includes(word));
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    for (const section of all(".group, .spec")) {
      section.hidden = section.querySelector(".row:not([hidden])") === null;
    }
    document.getElementById("shown").textContent = String(shown);
  };

  const follow = () => {
    const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (row === null || !row.classList.contains("row")) return;
    if (row.hidden) {
      for (const button of buttons) button.setAttribute("aria-pressed", "false");
      if (level !== null) level.value = "";
      search.value = "";
      filter();
    }
    open(row, true);
    row.scrollIntoView();
  };

  for (const row of rows) {
    open(row, false);
    row.querySelector(".line").addEventListener("click", () => {
      if (String(getSelection()) === "") open(row, !isOpen(row));
    });
  }
  for (const button of buttons) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      filter();
    });
  }
  level?.addEventListener("change", filter);
  search.addEventListener("input", filter);
  document.getElementById("expand")?.addEventListener("click", () => {
    for (const row of rows) if (!row.hidden) open(row, true);
  });
  document.getElementById("collapse")?.addEventListener("click", () => {
    for (const row of rows) open(row, false);
  });
  for (const button of all(".copy")) {
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "Copied";
      } catch {
        // From file:// a browser may refuse the clipboard: then the command is at least selected.
        getSelection().selectAllChildren(button.previousElementSibling);
      }
    });
  }
  document.documentElement.classList.add("js");
  addEventListener("hashchange", follow);
  // Browsers keep form values over a reload; the rows shown must agree with them.
  filter();
  follow();
})();
