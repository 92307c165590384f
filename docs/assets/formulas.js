// Formulas stand in the pages as \( … \) and \[ … \]; KaTeX sets them when a page is shown.
document.addEventListener("DOMContentLoaded", () => {
  for (const formula of document.querySelectorAll(".arithmatex")) {
    renderMathInElement(formula, {
      delimiters: [
        { left: "\\(", right: "\\)", display: false },
        { left: "\\[", right: "\\]", display: true },
      ],
      throwOnError: false,
    });
  }
});
