// How a JavaScript driver is run: one job a line on stdin, one outcome a line on stdout. See driver.py.

import readline from "node:readline";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import path from "node:path";

export const PROMPT = "Do the work with your tools.";
export const KEY = "not-a-key"; // the model is ours, and checks none

console.log = console.info = console.debug = console.error; // stdout has outcomes only

/// Imports a package of the framework's environment, which is not above this file.
export async function load(name) {
  const folder = path.join(process.env.RIALTO_INTEROP_HOME, process.env.FRAMEWORK_ENV);
  const require = createRequire(path.join(folder, "package.json"));
  return import(pathToFileURL(resolve(require, folder, name)));
}

function resolve(require, folder, name) {
  const found = (map) => (typeof map === "string" ? map : map && found(map.import ?? map.node ?? map.default));
  const parts = name.split("/");
  const own = parts.slice(0, name.startsWith("@") ? 2 : 1).join("/");
  const below = "." + name.slice(own.length).replace(/^(?=.)/, "");
  const root = path.join(folder, "node_modules", own);
  const { exports, module, main } = require(path.join(root, "package.json"));
  if (!exports) return path.join(root, below === "." ? (module ?? main) : below);
  const direct = found(below === "." ? (exports["."] ?? exports) : exports[below]);
  if (direct) return path.join(root, direct);
  for (const [pattern, target] of Object.entries(exports)) {
    const [head, tail] = pattern.split("*");
    if (tail !== undefined && below.startsWith(head) && below.endsWith(tail)) {
      return path.join(root, found(target).replace("*", below.slice(head.length, below.length - tail.length)));
    }
  }
  throw new Error(`${own} does not export ${below}`);
}

export async function serve(run) {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let outcome;
    try {
      outcome = { answer: String(await run({ args: [], headers: {}, answer: null, ...JSON.parse(line) })) };
    } catch (error) {
      console.error(error);
      outcome = { error: `${error?.name}: ${error?.message}` };
    }
    process.stdout.write(`OUTCOME ${JSON.stringify(outcome)}\n`);
  }
  process.exit(0);
}
