/**
 * Builds the page into the Python package: every file under assets/ has the hash of its content in its
 * name, and index.html names them. The same sources and lock file give the same bytes on any machine.
 *
 *   node build.mjs            writes ../src/bayplan/ui/static
 *   node build.mjs DIRECTORY  writes there instead
 *
 * Entries: `page` is the page of `bayplan ui`. An entry under `single` becomes one file with a fixed
 * name, script and styles side by side, for a program to put inline into a report.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "../src/bayplan/ui/static");

const hashed = { page: "src/main.tsx" };
const single = { report: "src/report.ts" };

async function bundle(name, entry, format) {
  const built = await build({
    entryPoints: { [name]: join(here, entry) },
    absWorkingDir: here,
    outdir: "out",
    bundle: true,
    minify: true,
    write: false,
    format,
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
  });
  return built.outputFiles.map((file) => [
    file.path.split(/[\\/]/).at(-1),
    Buffer.from(file.contents),
  ]);
}

function withHash(name, content) {
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 12);
  const dot = name.lastIndexOf(".");
  return `assets/${name.slice(0, dot)}-${hash}${name.slice(dot)}`;
}

const files = new Map();
const names = new Map();
const keep = (name, content) => {
  names.set(name, withHash(name, content));
  files.set(names.get(name), content);
};

keep("icon.svg", await readFile(join(here, "src/icon.svg")));
for (const [name, entry] of Object.entries(hashed)) {
  for (const [file, content] of await bundle(name, entry, "esm")) keep(file, content);
}
for (const [name, entry] of Object.entries(single)) {
  if (!existsSync(join(here, entry))) continue;
  for (const [file, content] of await bundle(name, entry, "iife")) files.set(file, content);
}
const index = await readFile(join(here, "src/index.html"), "utf8");
const filled = index.replace(/\{\{([^}]+)\}\}/g, (_, name) => names.get(name));
files.set("index.html", Buffer.from(filled));

await rm(target, { recursive: true, force: true });
await mkdir(join(target, "assets"), { recursive: true });
for (const [name, content] of files) await writeFile(join(target, name), content);
