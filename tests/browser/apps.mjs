// The checks of the apps: what a person sees and can do, in the official host, in both eras.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { eventually, startBrowser, startHost } from "./driver.mjs";

const ERAS = ["2025-11-25", "2026-07-28"];
const HOSTILE = "<img src=x onerror=alert(1)>";
const ASK = { messages: [{ role: "user", content: `Explain how a lighthouse works. ${HOSTILE}` }], diffusing: true, max_tokens: 300 };
const places = JSON.parse(process.argv[2]);
const only = process.argv.slice(3);
const browser = await startBrowser(places.chromium);
const hosts = { server: await startHost(places.server), bare: await startHost(places.bare) };
const heard = { console: [], dialogs: [], calls: [] };
let page;
let which;

async function open(name, bridge, era, apps = true) {
  await page?.close();
  which = name;
  for (const list of Object.values(heard)) list.length = 0;
  page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
  page.on("console", (message) => heard.console.push(message.text()));
  page.on("pageerror", (problem) => heard.console.push(`error: ${problem}`));
  page.on("dialog", (dialog) => (heard.dialogs.push(dialog.message()), dialog.dismiss()));
  page.on("request", (request) => request.method() === "POST" && heard.calls.push(request.postData() || ""));
  await page.goto(hosts[name].url);
  const tools = await page.evaluate((options) => window.host.connect(options), { path: `/to/${bridge}/mcp`, era, apps });
  assert.equal(await page.evaluate(() => window.host.revision()), era);
  return tools;
}

async function show(options) {
  const { width = 760, mode = "inline" } = options;
  await page.setViewportSize({ width, height: 900 });
  const found = await page.evaluate((all) => window.host.show(all), { sandbox: hosts[which].sandbox, theme: "light", width, height: mode === "inline" ? 200 : 900, ...options });
  assert.equal(found.mimeType, "text/html;profile=mcp-app");
  assert.equal(found.border, true);
  return page.frameLocator("#app").frameLocator("iframe");
}

const frame = () => page.frames().find((one) => one.parentFrame()?.parentFrame());
const events = () => page.evaluate(() => window.events);
const sees = (app, text) => app.getByText(text).first().waitFor({ timeout: 30000 });
const calls = (tool) => heard.calls.filter((body) => body.includes(`"${tool}"`)).length;
const picture = async (name) => places.images && page.locator("#app").screenshot({ path: `${places.images}/${name}.png` });

function assertQuiet() {
  assert.deepEqual(heard.dialogs, []);
  assert.deepEqual(heard.console.filter((text) => text.startsWith("error:")), []);
}

const checks = {};
for (const era of ERAS) {
  checks[`${era} leaderboard: shown, sorted, a cell's runs, the model told, resized`] = async () => {
    const tools = await open("server", "aoc", era);
    assert.deepEqual(tools.filter((tool) => tool.appOnly).map((tool) => tool.name), ["leaderboard_cells", "leaderboard_runs"]);
    const app = await show({ tool: "speed_leaderboard" });
    await sees(app, "clever-fox-4.5");
    await eventually("sized", async () => (await events()).sizes.length > 0);
    const before = (await events()).sizes.at(-1).height;
    await app.getByRole("button", { name: "Model" }).click();
    assert.equal(await app.locator("tbody tr").nth(0).locator(".name").textContent(), HOSTILE);
    await app.locator("td.cell button").nth(1).focus();
    await page.keyboard.press("Enter");
    await sees(app, "7 runs");
    await eventually("grown", async () => (await events()).sizes.at(-1).height > before);
    await app.getByRole("button", { name: "Tell the model" }).click();
    await sees(app, "The model knows of this selection now.");
    const [told] = (await events()).context;
    assert.match(told.content[0].text, /selected .* on day \d phase \d of the 2025 leaderboard/);
    assert.equal(told.structuredContent.runs.length, 7);
    assert.equal(await app.locator("img").count(), 0);
    assertQuiet();
  };
  checks[`${era} files: no game, a game, a file, the agent asked, the game gone`] = async () => {
    const tools = await open("server", "bitburner", era);
    assert.ok(tools.some((tool) => tool.name === "browse_files" && tool.uri === "ui://bitburner/files"));
    const app = await show({ tool: "browse_files", call: false });
    await sees(app, "No game is connected");
    await sees(app, /Options → Remote API/);
    const game = startGame();
    try {
      await sees(app, "hack.js");
      await sees(app, "1.85 GB");
      await app.getByRole("treeitem", { name: /^notes\.txt/ }).click();
      await sees(app, `Remember ${HOSTILE}`);
      await app.getByRole("button", { name: "Ask the agent to change it" }).click();
      await page.keyboard.type("Add a title");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await eventually("asked", async () => (await events()).messages.length === 1);
      const [asked] = (await events()).messages;
      assert.equal(asked.role, "user");
      assert.equal(asked.content[0].text, 'Please change the file "notes.txt" on the server "home" of the game: Add a title');
      await app.getByLabel("Filter files").fill("script09");
      await eventually("filtered", async () => (await app.locator(".row.file").count()) === 10);
      for (const writing of ["write_file", "edit_file", "delete_file", "move_file"]) assert.equal(calls(writing), 0);
    } finally {
      game.kill();
    }
    await sees(app, /The game has gone/);
    assert.equal(await app.locator("img").count(), 0);
    assertQuiet();
  };
  checks[`${era} files: what is not as the agent wrote it is marked`] = async () => {
    await open("server", "bitburner", era);
    let game = startGame();
    try {
      const app = await show({ tool: "browse_files", call: false });
      await sees(app, "hack.js");
      await page.evaluate((args) => window.host.call("write_file", args), { filename: "fresh.js", content: "// new\n" });
      await app.getByRole("treeitem", { name: /^fresh\.js(?!.*missing)/ }).waitFor({ timeout: 30000 });
      game.kill();
      await sees(app, /The game has gone/);
      game = startGame(); // without the file: it was not saved
      await app.getByRole("treeitem", { name: /^fresh\.js.*missing/ }).waitFor({ timeout: 30000 });
    } finally {
      game.kill();
    }
    assertQuiet();
  };
  checks[`${era} diffusion: watched while it is refined, looked back at, stopped, never paid for by itself`] = async () => {
    await open("server", "mercury", era);
    let app = await show({ tool: "mercury_chat_stream", args: ASK, call: false });
    await eventually("looked", () => calls("mercury_diffusion_state") > 1);
    assert.equal(calls("mercury_chat_stream"), 0);
    app = await show({ tool: "mercury_chat_stream", args: ASK });
    await sees(app, "Refining");
    await sees(app, "Done");
    await eventually("the answer", async () => (await app.locator("#text").textContent()).includes(HOSTILE));
    assert.equal(await app.locator("#text img").count(), 0);
    await app.locator("#slider").fill("1");
    await sees(app, /State 2 of \d+/);
    assert.equal(calls("mercury_chat_stream"), 1);
    await app.getByRole("button", { name: "Run it again" }).click();
    await app.getByRole("button", { name: "Stop" }).waitFor();
    await app.locator("#stop").dispatchEvent("click"); // at once: a busy machine would wait until the answer is there
    await sees(app, "Stopped. The request at the API has ended; what had arrived is below.");
    assert.equal(calls("mercury_chat_stream"), 2);
    assertQuiet();
  };
  checks[`${era} a client without apps is told of no page and no tool of one`] = async () => {
    for (const bridge of ["aoc", "bitburner", "mercury"]) {
      const tools = await open("server", bridge, era, false);
      assert.deepEqual(tools.filter((tool) => tool.appOnly || tool.name === "browse_files"), []);
    }
  };
  checks[`${era} a fetch from a page is blocked by the host's policy`] = async () => {
    await open("server", "aoc", era);
    await sees(await show({ tool: "speed_leaderboard" }), "clever-fox-4.5");
    const outcome = await frame().evaluate((url) => fetch(url).then(() => "fetched", () => "blocked"), hosts.server.url);
    assert.equal(outcome, "blocked");
    assert.ok(heard.console.some((text) => /Content Security Policy/.test(text)));
  };
  checks[`${era} a page takes the host's theme and variables, also when they change`] = async () => {
    await open("server", "aoc", era);
    const app = await show({ tool: "speed_leaderboard", theme: "dark", variables: { "--color-text-primary": "rgb(1, 2, 3)" } });
    await sees(app, "clever-fox-4.5");
    const read = (element, name) => app.locator(element).first().evaluate((one, property) => getComputedStyle(one)[property], name);
    assert.equal(await read("body", "color"), "rgb(1, 2, 3)");
    const dark = await read("html", "backgroundColor");
    await page.evaluate(() => window.host.context({ theme: "light" }));
    await eventually("light", async () => (await read("html", "backgroundColor")) !== dark);
    await app.getByRole("button", { name: "Full screen" }).click();
    await app.getByRole("button", { name: "Leave full screen" }).waitFor();
  };
  checks[`${era} a page answers its teardown and asks for nothing afterwards`] = async () => {
    await open("bare", "bitburner", era);
    const app = await show({ tool: "browse_files", call: false });
    await sees(app, "No game is connected");
    assert.deepEqual(await page.evaluate(() => window.host.teardown()), {});
    const before = heard.calls.length;
    await page.waitForTimeout(3000); // longer than the two seconds after which it would ask again
    assert.equal(heard.calls.length, before);
  };
}

checks["what is empty, filtered away or failed says what to do, and new records show up"] = async () => {
  await open("bare", "aoc", ERAS[1]);
  const board = await show({ tool: "speed_leaderboard", theme: "dark", width: 360 });
  await sees(board, /let the server time it/);
  await page.evaluate((args) => window.host.call("record_speed", args), { day: 1, phase: 1, llm_name: "new-newt", speed_ms: 1200 });
  await sees(board, "new-newt"); // by itself, with the next look
  await open("server", "aoc", ERAS[1]);
  await sees(await show({ tool: "speed_leaderboard", args: { llm: "nobody" } }), "Clear the filter to see all of them.");
  await open("server", "mercury", ERAS[1]);
  const app = await show({ tool: "mercury_chat_stream", args: { ...ASK, diffusing: false, model: "no-such-model" } });
  await sees(app, /has no model 'no-such-model' for this call/);
  assert.equal(await app.locator("#problem").evaluate((one) => one.textContent.startsWith("{")), false);
};

checks["pictures, in light and dark, at the widths of a phone and of a desk"] = async () => {
  const game = startGame();
  try {
    for (const theme of ["light", "dark"]) {
      await open("server", "aoc", ERAS[1]);
      let app = await show({ tool: "speed_leaderboard", theme, width: 900 });
      await sees(app, "clever-fox-4.5");
      await app.locator("td.cell button").nth(3).click();
      await sees(app, "7 runs");
      await frame().evaluate((name) => [...document.querySelectorAll("tbody tr")].find((row) => row.textContent.includes(name))?.remove(), HOSTILE);
      await page.mouse.move(0, 0);
      await picture(`app-leaderboard-${theme}`);
      await open("server", "bitburner", ERAS[1]);
      app = await show({ tool: "browse_files", theme, width: 900, args: { filename: "hack.js" } });
      await sees(app, "8 lines");
      await sees(app, "1.85 GB");
      await app.getByRole("treeitem", { name: /^› gen/ }).click();
      await picture(`app-files-${theme}`);
      app = await show({ tool: "browse_files", theme, width: 360 });
      await sees(app, "watcher.js");
      assert.ok((await frame().evaluate(() => document.documentElement.scrollWidth)) <= 360);
      await open("server", "mercury", ERAS[1]);
      app = await show({ tool: "mercury_chat_stream", theme, width: 900, args: { ...ASK, messages: [{ role: "user", content: "Explain how a lighthouse works." }] } });
      await sees(app, "Done");
      await app.locator("#slider").fill("8");
      await picture(`app-diffusion-${theme}`);
    }
  } finally {
    game.kill();
  }
};

function startGame() {
  const [program, ...words] = JSON.parse(places.game);
  return spawn(program, words, { stdio: "ignore" });
}

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  if (only.length && !only.some((word) => name.includes(word))) continue;
  const began = Date.now();
  try {
    await check();
    console.log(`ok      ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
  } catch (problem) {
    failed++;
    console.log(`failed  ${name}\n        ${String(problem.stack).split("\n").slice(0, 6).join("\n        ")}`);
  }
}
await browser.close();
for (const host of Object.values(hosts)) host.close();
console.log(failed ? `${failed} failed` : "all passed");
process.exit(failed ? 1 : 0);
