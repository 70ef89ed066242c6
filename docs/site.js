// The website: what the theme's own script adds after loading must be reachable by keyboard, and is no landmark.
let isDue = false;
function improve() {
  isDue = false;
  for (const bar of document.querySelectorAll("nav.md-code__nav:not([role])")) bar.setAttribute("role", "presentation");
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex]), pre > code:not([tabindex])")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
}
function improveSoon() {
  if (!isDue) requestAnimationFrame(improve);
  isDue = true;
}
new MutationObserver(improveSoon).observe(document.documentElement, { childList: true, subtree: true });
addEventListener("resize", improveSoon);
improveSoon();
