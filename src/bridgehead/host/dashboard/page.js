// Keeps a page up to date: fetches it again every two seconds while somebody sees it, and puts those sections in
// place that have changed. Also copies commands. Nothing else here; every page works without.
"use strict";

const EVERY = 2000;
const main = document.querySelector("main[data-live]");
const button = document.getElementById("pause");
let isPaused = false;
let timer = 0;

// Whoever reads, selects or has the focus in a section keeps it as it is.
function isInUse(part) {
  const selection = document.getSelection();
  if (selection && !selection.isCollapsed && part.contains(selection.anchorNode)) return true;
  return part.contains(document.activeElement);
}

function replaceParts(fresh) {
  for (const part of main.querySelectorAll("section[id], p[id]")) {
    const other = fresh.getElementById(part.id);
    if (!other || isInUse(part) || other.innerHTML === part.innerHTML) continue;
    const scrolled = [...part.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
    part.replaceChildren(...document.importNode(other, true).childNodes);
    part.querySelectorAll(".scroll").forEach((one, place) => (one.scrollLeft = scrolled[place] ?? 0));
  }
}

async function update() {
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" }, redirect: "manual", cache: "no-store" });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (answer.status !== 200 || !fresh.querySelector("main[data-live]")) {
      button.textContent = "Not live"; // the page to sign in on comes with status 200
      button.title = "The server refused, or you are signed out. Load the page again.";
      return stop();
    }
    replaceParts(fresh);
    document.documentElement.dataset.state = "live";
  } catch {
    document.documentElement.dataset.state = "away"; // the server may come back
  }
  wait();
}

function stop() {
  clearTimeout(timer);
  timer = 0;
}

function wait() {
  stop();
  if (!isPaused && !document.hidden) timer = setTimeout(update, EVERY);
}

async function copy(button) {
  const command = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(command.textContent); // browsers offer it over https and on localhost
    button.textContent = "Copied";
  } catch {
    document.getSelection().selectAllChildren(command);
    button.textContent = "Selected";
  }
  setTimeout(() => (button.textContent = "Copy"), EVERY);
}

document.documentElement.dataset.script = ""; // shows the buttons that need it, also in sections that are replaced
document.addEventListener("click", (event) => {
  const button = event.target.closest("button.copy");
  if (button) copy(button);
});

if (main) {
  button.hidden = false;
  button.addEventListener("click", () => {
    isPaused = !isPaused;
    button.textContent = isPaused ? "Resume" : "Pause";
    button.setAttribute("aria-pressed", String(isPaused));
    isPaused ? stop() : update();
  });
  document.addEventListener("visibilitychange", () => (document.hidden || isPaused ? stop() : update()));
  wait();
}
