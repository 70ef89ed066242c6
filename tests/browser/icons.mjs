// The icons of the bundles: each PNG shows what its SVG draws; with pictures, the PNGs are drawn again.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { startBrowser } from "./driver.mjs";

const SIZE = 512;
const places = JSON.parse(process.argv[2]);
const names = (await readdir(places.icons)).filter((name) => name.endsWith(".svg"));
const browser = await startBrowser(places.chromium);
const page = await browser.newPage({ viewport: { width: SIZE, height: SIZE } });

// The mean difference of two images of the same square, a channel.
async function compare(urls) {
  return page.evaluate(async ([first, second, size]) => {
    const read = async (url) => {
      const image = Object.assign(new Image(), { src: url });
      await image.decode();
      const canvas = new OffscreenCanvas(size, size).getContext("2d");
      canvas.drawImage(image, 0, 0, size, size);
      return canvas.getImageData(0, 0, size, size).data;
    };
    const [one, other] = [await read(first), await read(second)];
    return one.reduce((sum, value, place) => sum + Math.abs(value - other[place]), 0) / one.length;
  }, [...urls, SIZE]);
}

try {
  for (const name of names) {
    const [drawn, shown] = [`${places.icons}/${name}`, `${places.icons}/${name.replace(".svg", ".png")}`];
    const svg = await readFile(drawn, "utf8");
    if (places.images) {
      await page.setContent(`<style>body{margin:0}svg{display:block}</style>${svg}`);
      await page.screenshot({ path: shown, omitBackground: true });
    }
    const difference = await compare([`data:image/svg+xml,${encodeURIComponent(svg)}`, `data:image/png;base64,${await readFile(shown, "base64")}`]);
    assert.ok(difference < 1, `${name}: the PNG differs by ${difference}; run make browser ARGS=--pictures`);
    console.log(`ok   icons: ${name}`);
  }
} finally {
  await browser.close();
}
