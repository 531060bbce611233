// Drives an MCP server with the official TypeScript SDK and says what it saw, as JSON lines.
//
//     mcp_ts.mjs [--mode auto|legacy] (--stdio CMD ARGS... | --url URL [--token T])
//
// The arguments, the commands on stdin and the lines on stdout are those of mcp_py.py.

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import './end_with_parent.mjs';

// The packages live in the cache folder that `interop/setup` filled; `interop/run` names it.
const require = createRequire(`${process.env.RIALTO_INTEROP_HOME}/mcp_ts/package.json`);
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

/** The SDK's own complaints have a word for a code; only the server's numbers count. */
function failure({ code, message, data }) {
  return { error: { code: typeof code === 'number' ? code : null, message, data } };
}

class Driver {
  #calls = new Map();

  constructor(client) {
    this.client = client;
  }

  /** Runs the commands until stdin ends and the last call has been answered. */
  async obey() {
    const beside = [];
    for await (const line of createInterface({ input: process.stdin })) {
      if (!line.trim()) continue;
      const command = JSON.parse(line);
      if ('cancel' in command) this.#calls.get(command.cancel).abort();
      else if ('id' in command) beside.push(this.run(command));
      else await this.run(command);
    }
    await Promise.all(beside);
  }

  async run(command) {
    const tag = 'id' in command ? { id: command.id } : {};
    const stop = new AbortController();
    this.#calls.set(command.id, stop);
    try {
      say({ ...tag, ...(await this.answer(command, tag, stop.signal)) });
    } catch (error) {
      if (stop.signal.aborted) return say({ ...tag, cancelled: true });
      say({ ...tag, ...failure(error) });
    }
  }

  async answer(command, tag, signal) {
    if ('list' in command) return { tools: await this.tools() };
    const onprogress = (progress) => say({ ...tag, progress });
    const params = { name: command.call, arguments: command.arguments ?? {} };
    const patience = { timeout: 600_000, resetTimeoutOnProgress: true };
    return { result: await this.client.callTool(params, { onprogress, signal, ...patience }) };
  }

  /** Asks a modern server for changes; both eras' changes reach the notification handler. */
  async listen() {
    if (this.client.getNegotiatedProtocolVersion() < '2026-07-28') return;
    if (!this.client.getServerCapabilities()?.tools?.listChanged) return;
    await this.client.listen({ toolsListChanged: true }).catch((error) => {
      console.error(`the subscription was refused: ${error.message}`);
    });
  }

  /** All pages: without a cursor the SDK follows them itself. */
  async tools() {
    return (await this.client.listTools(undefined, { cacheMode: 'refresh' })).tools;
  }
}

function transport(args, command) {
  if (command.length) {
    const [program, ...rest] = command;
    return new StdioClientTransport({ command: program, args: rest, env: process.env });
  }
  const headers = args.token ? { authorization: `Bearer ${args.token}` } : {};
  return new StreamableHTTPClientTransport(new URL(args.url), { requestInit: { headers } });
}

function connectable({ mode, elicit }) {
  const client = new Client(
    { name: 'rialto-interop', version: '1.0.0' },
    {
      versionNegotiation: { mode: ['auto', 'legacy'].includes(mode) ? mode : { pin: mode } },
      capabilities: elicit ? { elicitation: { form: {}, url: {} } } : {},
    },
  );
  client.setNotificationHandler('notifications/tools/list_changed', () =>
    say({ notification: 'tools/list_changed' }),
  );
  if (elicit) {
    client.setRequestHandler('elicitation/create', ({ params }) => {
      say({ elicitation: params });
      return JSON.parse(elicit);
    });
  }
  return client;
}

/** Everything after --stdio belongs to the server. */
function parse() {
  const argv = process.argv.slice(2);
  const at = argv.indexOf('--stdio');
  const { values } = parseArgs({
    args: at < 0 ? argv : argv.slice(0, at),
    options: {
      mode: { type: 'string', default: 'auto' },
      url: { type: 'string' },
      token: { type: 'string' },
      elicit: { type: 'string' },
    },
  });
  return [values, at < 0 ? [] : argv.slice(at + 1)];
}

async function main() {
  const [args, command] = parse();
  const client = connectable(args);
  await client.connect(transport(args, command));
  const driver = new Driver(client);
  say({
    protocol: client.getNegotiatedProtocolVersion(),
    server: client.getServerVersion(),
    tools: await driver.tools(),
  });
  await driver.listen();
  await driver.obey();
  await client.close();
}

try {
  await main();
} catch (error) {
  say(failure(error));
  process.exitCode = 1;
}
process.exit();
