// An MCP server of the official TypeScript SDK, on stdin and stdout.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const home = `${process.env.RIALTO_INTEROP_HOME}/inspector/`;
const require = createRequire(home);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { McpServer } = await load("@modelcontextprotocol/server");
const { StdioServerTransport } = await load("@modelcontextprotocol/server/stdio");
const { z } = await load("zod");

const server = new McpServer({ name: "ts", version: "1.0.0" });
const numbers = z.object({ a: z.number(), b: z.number() });
const sum = { description: "Adds two numbers.", inputSchema: numbers, outputSchema: z.object({ sum: z.number() }) };
server.registerTool("ts_sum", sum, async ({ a, b }) => {
  const result = { sum: a + b };
  return { content: [{ type: "text", text: JSON.stringify(result) }], structuredContent: result };
});
server.registerTool("ts_boom", { description: "Fails." }, async () => {
  throw new Error("no luck today");
});
await server.connect(new StdioServerTransport());
