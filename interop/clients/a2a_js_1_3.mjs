// An A2A 1.0 client on the official JavaScript SDK, @a2a-js/sdk 1.3.0 (JSON-RPC or REST).
//
// The arguments, the commands on stdin and the lines on stdout are those of a2a_driving.py.

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import './end_with_parent.mjs';

// The packages live in the cache folder that `interop/setup` filled; `interop/run` names it.
const require = createRequire(`${process.env.RIALTO_INTEROP_HOME}/a2a_js/package.json`);
const sdk = require('@a2a-js/sdk');
const {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
  createAuthenticatingFetchWithRetry,
} = require('@a2a-js/sdk/client');

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

class Driver {
  #running = new Map();

  constructor(client) {
    this.client = client;
  }

  async obey() {
    const all = [];
    for await (const line of createInterface({ input: process.stdin })) {
      const command = JSON.parse(line);
      if ('drop' in command) this.#running.get(command.drop).abort();
      else all.push(this.run(command));
    }
    await Promise.all(all);
  }

  async run(command) {
    const { id } = command;
    const stop = new AbortController();
    this.#running.set(id, stop);
    try {
      const answer = OPERATIONS[command.op](this.client, command, { signal: stop.signal });
      if (answer[Symbol.asyncIterator]) {
        for await (const event of answer) say({ id, event });
        say({ id, result: null });
      } else say({ id, result: (await answer) ?? null });
    } catch (error) {
      say(stop.signal.aborted ? { id, dropped: true } : { id, ...failure(error) });
    }
  }
}

const OPERATIONS = {
  async send(client, command, options) {
    return answered(await client.sendMessage(request(command), options));
  },
  async *stream(client, command, options) {
    for await (const event of client.sendMessageStream(request(command), options)) yield told(event);
  },
  async get(client, { task }, options) {
    return neutralTask(sdk.Task.toJSON(await client.getTask({ tenant: '', id: task }, options)));
  },
  async list(client, { context }, options) {
    const asked = sdk.ListTasksRequest.fromJSON({ contextId: context, includeArtifacts: true });
    const listed = sdk.ListTasksResponse.toJSON(await client.listTasks(asked, options));
    return listed.tasks.map(neutralTask);
  },
  async cancel(client, { task }, options) {
    return neutralTask(sdk.Task.toJSON(await client.cancelTask({ tenant: '', id: task }, options)));
  },
  async *resubscribe(client, { task }, options) {
    for await (const event of client.resubscribeTask({ tenant: '', id: task }, options)) {
      yield told(event);
    }
  },
  async push_set(client, { task, push }, options) {
    const wanted = sdk.TaskPushNotificationConfig.fromJSON({ taskId: task, ...push });
    return config(await client.createTaskPushNotificationConfig(wanted, options));
  },
  async push_get(client, { task, config: id }, options) {
    const asked = { tenant: '', taskId: task, id };
    return config(await client.getTaskPushNotificationConfig(asked, options));
  },
  async push_list(client, { task }, options) {
    const asked = sdk.ListTaskPushNotificationConfigsRequest.fromJSON({ taskId: task });
    return (await client.listTaskPushNotificationConfig(asked, options)).configs.map(config);
  },
  async push_delete(client, { task, config: id }, options) {
    await client.deleteTaskPushNotificationConfig({ tenant: '', taskId: task, id }, options);
  },
  async card(client, _, options) {
    return neutralCard(sdk.AgentCard.toJSON(await client.getAgentCard(options)));
  },
};

function request({ skill, text, data, task = '', context = '', at_once = false, push, metadata }) {
  return sdk.SendMessageRequest.fromJSON({
    message: {
      messageId: crypto.randomUUID(),
      role: 'ROLE_USER',
      parts: [...(text === undefined ? [] : [{ text }]), ...(data === undefined ? [] : [{ data }])],
      taskId: task,
      contextId: context,
    },
    configuration: { returnImmediately: at_once, ...(push && { taskPushNotificationConfig: push }) },
    metadata: { ...(skill && { skillId: skill }), ...metadata },
  });
}

const config = ({ taskId, id, url, token }) => ({ task: taskId, config: id, url, token });

/** A task or a message, told apart by what only one of them has. */
const answered = (answer) =>
  'messageId' in answer
    ? { message: { text: said(sdk.Message.toJSON(answer)) } }
    : { task: neutralTask(sdk.Task.toJSON(answer)) };

function told(event) {
  const { task, message, statusUpdate, artifactUpdate } = sdk.StreamResponse.toJSON(event);
  if (task) return { task: neutralTask(task) };
  if (message) return { message: { text: said(message) } };
  if (artifactUpdate) {
    return { artifact: { parts: parts(artifactUpdate.artifact) }, task_id: artifactUpdate.taskId };
  }
  return { status: status(statusUpdate.status), task_id: statusUpdate.taskId };
}

const neutralCard = ({ name, skills = [], capabilities, securitySchemes = {} }) => ({
  name,
  skills: skills.map(({ id }) => id),
  streaming: capabilities.streaming ?? false,
  push: capabilities.pushNotifications ?? false,
  schemes: Object.keys(securitySchemes).sort(),
});

const neutralTask = ({ id, contextId, status: shown, artifacts = [] }) => ({
  id,
  context: contextId,
  ...status(shown),
  artifacts: artifacts.map(parts),
});

const status = ({ state, message }) => ({
  state: state.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-'),
  text: message ? said(message) : '',
});

const said = (message) =>
  parts(message)
    .map(({ text = '' }) => text)
    .join('');

const parts = ({ parts: all = [] }) =>
  all.map(({ text, data, raw, url, filename, mediaType }) => {
    if (text !== undefined) return { text };
    if (data !== undefined) return { data };
    return { file: { name: filename, mime: mediaType, bytes: raw, uri: url } };
  });

// The SDK has classes where the wire has codes.
const CODES = {
  TaskNotFoundError: -32001,
  TaskNotCancelableError: -32002,
  RequestMalformedError: -32602,
};

function failure(error) {
  const { name, message, code } = error;
  return { error: { class: name, message, code: CODES[name] ?? code ?? null } };
}

async function connect({ url, token, binding }) {
  const bearer = { authorization: `Bearer ${token}` };
  const handler = { headers: async () => bearer, shouldRetryWithHeaders: async () => undefined };
  const fetchImpl = token ? createAuthenticatingFetchWithRetry(fetch, handler) : fetch;
  const Transport = binding === 'rest' ? RestTransportFactory : JsonRpcTransportFactory;
  const factory = new ClientFactory({ transports: [new Transport({ fetchImpl })] });
  const path = new URL(`${url}/.well-known/agent-card.json`);
  const card = await new DefaultAgentCardResolver().resolve(path.origin, path.pathname);
  return [await factory.createFromAgentCard(card), card];
}

async function main() {
  const { values: args } = parseArgs({
    options: {
      url: { type: 'string' },
      token: { type: 'string' },
      binding: { type: 'string', default: 'jsonrpc' },
    },
  });
  const [client, card] = await connect(args);
  say({ card: neutralCard(sdk.AgentCard.toJSON(card)), ops: Object.keys(OPERATIONS) });
  await new Driver(client).obey();
}

try {
  await main();
} catch (error) {
  say(failure(error));
  process.exitCode = 1;
}
process.exit();
