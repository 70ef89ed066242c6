// The website: what the theme's own script adds after loading must be reachable by keyboard, and is no landmark;
// pictures follow the theme that the reader chose, and scroll on a phone; tables that do not fit become lists; a name
// such as --dry-run stays on one line.
const READABLE_WIDTH = 600; // pixels; a wider picture has letters that a phone would make too small
const LONGEST_NAME = 32; // characters that fit into a line on a phone
const PHONE_LINE = 45; // characters of a table's row that a phone shows
const DESK_LINE = 110; // of a row with more than three columns, on any screen
let isDue = false;
function improve() {
  isDue = false;
  for (const bar of document.querySelectorAll("nav.md-code__nav:not([role])")) bar.setAttribute("role", "presentation");
  const isDark = document.body.dataset.mdColorScheme === "slate";
  for (const source of document.querySelectorAll("picture > source")) source.media = isDark ? "all" : "not all";
  for (const image of document.querySelectorAll("p > picture > img, p > img")) {
    if (image.naturalWidth > READABLE_WIDTH) image.closest("p").classList.add("picture");
  }
  for (const code of document.querySelectorAll(":not(pre) > code:not(.whole)")) {
    if (code.textContent.length <= LONGEST_NAME && !code.textContent.includes(" ")) code.classList.add("whole");
  }
  for (const table of document.querySelectorAll(".md-typeset table:not([class], [data-line])")) {
    const heads = [...table.tHead.rows[0].cells];
    const rows = [...table.tBodies[0].rows];
    const longest = heads.map((_, place) => Math.max(...rows.map((row) => row.cells[place].textContent.length)));
    const isOfFigures = heads.some((head) => head.style.textAlign === "right"); // compared down their column
    table.dataset.line = isOfFigures ? 0 : longest.reduce((sum, length) => sum + length);
    if (heads.length > 2) for (const row of rows) heads.slice(1).forEach((head, place) => (row.cells[place + 1].dataset.column = head.textContent));
  }
  const isPhone = matchMedia("(max-width: 44.984375em)").matches;
  for (const table of document.querySelectorAll(".md-typeset table[data-line]")) {
    const isWide = table.tHead.rows[0].cells.length > 3 && table.dataset.line > DESK_LINE;
    table.toggleAttribute("data-list", isWide || (isPhone && table.dataset.line > PHONE_LINE));
  }
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
addEventListener("load", improveSoon, true); // of each picture, too
improveSoon();
