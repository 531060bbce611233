// What the JavaScript agent can do: the behaviours of skills.py, in the same neutral words.

import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const LOGIN_URL = 'https://login.example.com/start';
const REPORT_URL = 'https://files.example.com/report.pdf';
const PIXEL_PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';

const SILENCE_WAV = 'UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==';

/** The `traceparent` of the last request, which the agent notes. */
export const last = { trace: '' };

// What the card says: id -> {name, description, example, inputSchema?}
export const SKILLS = JSON.parse(readFileSync(new URL('./skills.json', import.meta.url), 'utf8'));

/** Finds the skill: a metadata's `skillId`, the data's `skill`, the text's first word. */
export function asked(metadatas, data, text) {
  for (const metadata of metadatas) {
    if (metadata?.skillId) return { skill: String(metadata.skillId), data, text };
  }
  if (typeof data?.skill === 'string') return { skill: data.skill, data, text };
  const [, word, rest] = text.trim().match(/^(\S*)\s*(.*)$/s);
  return word in SKILLS ? { skill: word, data, text: rest } : { skill: '', data, text };
}

/** The behaviours, and the memory of which task waits for which answer. */
export class Skills {
  #waiting = new Map();

  /** All events of one message, the closing state last. An abort ends it early. */
  async *answer(task, asked, signal) {
    const waiting = this.#waiting.get(task);
    this.#waiting.delete(task);
    const events = waiting
      ? resume(waiting, asked)
      : (BEHAVIOURS[asked.skill] ?? unknown)(asked, signal);
    for await (const event of events) {
      if (/^(input|auth)-required$/.test(event.state)) this.#waiting.set(task, asked.skill);
      yield event;
    }
  }
}

const BEHAVIOURS = {
  async *echo({ data, text }) {
    yield artifact('echo', [data === undefined ? { text } : { data }]);
    yield status('completed');
  },
  async *say(asked) {
    yield artifact('greeting', [{ text: `hello ${argument(asked, 'name', 'world')}` }]);
    yield status('completed');
  },
  async *count(asked, signal) {
    const steps = Number(argument(asked, 'steps', 3));
    for (let step = 1; step <= steps; step += 1) {
      yield status('working', `step ${step}/${steps}`);
      await sleep(100, undefined, { signal });
      const chunk = step === steps ? `${step}` : `${step} `;
      yield artifact('numbers', [{ text: chunk }], step > 1, step === steps);
    }
    yield status('completed');
  },
  async *fail() {
    yield status('failed', 'it broke on purpose');
  },
  async *slow(asked, signal) {
    yield status('working', 'this takes a while');
    await sleep(1000 * Number(argument(asked, 'seconds', 3)), undefined, { signal });
    yield artifact('slow', [{ text: 'done at last' }]);
    yield status('completed');
  },
  async *media() {
    yield artifact('media', [
      { raw: SILENCE_WAV, filename: 'silence.wav', mediaType: 'audio/wav' },
      { raw: Buffer.from('a note').toString('base64'), filename: 'note.txt', mediaType: 'text/plain' },
    ]);
    yield status('completed');
  },
  async *heard() {
    yield artifact('trace', [{ text: last.trace }]);
    yield status('completed');
  },
  async *ask() {
    yield status('input-required', 'which colour?');
  },
  async *files() {
    yield artifact('files', [
      { text: 'here are the files' },
      { raw: PIXEL_PNG, filename: 'pixel.png', mediaType: 'image/png' },
      { url: REPORT_URL, filename: 'report.pdf', mediaType: 'application/pdf' },
      { data: { files: 2, names: ['pixel.png', 'report.pdf'] } },
    ]);
    yield status('completed');
  },
  async *login() {
    yield status('auth-required', `please sign in at ${LOGIN_URL}`);
  },
  async *reply() {
    yield { reply: 'just a message' };
  },
};

async function* resume(skill, asked) {
  const text = skill === 'ask' ? `you chose ${said(asked)}` : 'signed in';
  yield artifact(skill === 'ask' ? 'colour' : 'login', [{ text }]);
  yield status('completed');
}

async function* unknown({ skill }) {
  const named = skill ? `no skill is called ${skill}` : 'no skill was named';
  yield status('failed', `${named}; there are: ${Object.keys(SKILLS).join(', ')}`);
}

const status = (state, text) => ({ state, text });
const artifact = (name, parts, append = false, last = true) => ({ name, parts, append, last });
const argument = ({ data, text }, key, fallback) => data?.[key] ?? (text.trim() || fallback);

/** An answer in words: the text, else the data's first string, else the data. */
function said({ data, text }) {
  const words = Object.values(data ?? {}).find((value) => typeof value === 'string');
  return text || (words ?? JSON.stringify(data));
}
