// The website: what the theme's own script adds after loading must be reachable by keyboard, and is no landmark;
// pictures follow the theme that the reader chose, and scroll on a phone.
let isDue = false;
function improve() {
  isDue = false;
  for (const bar of document.querySelectorAll("nav.md-code__nav:not([role])")) bar.setAttribute("role", "presentation");
  const isDark = document.body.dataset.mdColorScheme === "slate";
  for (const source of document.querySelectorAll("picture > source")) source.media = isDark ? "all" : "not all";
  for (const picture of document.querySelectorAll("p > picture, p > img")) picture.parentElement.classList.add("picture");
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex]), .picture:not([tabindex]), pre > code:not([tabindex])")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
}
function improveSoon() {
  if (!isDue) requestAnimationFrame(improve);
  isDue = true;
}
new MutationObserver(improveSoon).observe(document.documentElement, { childList: true, subtree: true, attributeFilter: ["data-md-color-scheme"] });
addEventListener("resize", improveSoon);
improveSoon();
