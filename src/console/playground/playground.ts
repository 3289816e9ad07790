import { type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { askJson, savedToken } from '../api.js';
import { messageOf } from '../words.js';
import { type BlobUrls, createBlobUrls } from './blob-urls.js';
import type { PlaygroundCall } from './call.js';
import type { Choice, PlaygroundModel } from './choice.js';
import type { Asked } from './code/samples.js';
import type { Language } from './code-pane.js';
import type { Turn } from './conversation.js';
import { createPlaygroundExchange, type PlaygroundExchange } from './exchange.js';
import { createKey, keepKey, type PlaygroundKey } from './key-field.js';
import { type CallRecord, emptyRecord } from './record.js';
import { runChat } from './run-chat.js';
import { runImage, runSpeech } from './run-media.js';
import { runVideo } from './run-video.js';
import { createSettings, problemOf, readChoice, type Settings } from './settings.js';
import type { ChosenTabs } from './tabs.js';
import { emptyAnswer, hasBegun, type TextAnswer, turnOf } from './text-answer.js';

/** Shown in the code without a prompt. */
const examplePrompt = 'Hello';

/** The answer of `GET /playground/models`. */
interface PlaygroundOffer {
  /** The public key of the demo; null otherwise. */
  readonly demoKey: string | null;
  readonly models: readonly PlaygroundModel[];
}

/** Groups of the config with the models that each permits, `*` for all. */
type Groups = Readonly<Record<string, { readonly models: readonly string[] }>>;

/** The state of the playground. A call continues while the view is not shown. */
export interface Playground {
  /** The gateway's own URL; empty until known. */
  readonly baseUrl: ReadonlySignal<string>;
  readonly settings: Settings;
  readonly key: PlaygroundKey;
  readonly prompt: Signal<string>;
  /** Why nothing was sent; empty if it was. */
  readonly problem: Signal<string>;
  readonly exchanges: Signal<readonly PlaygroundExchange[]>;
  /** The record of the last call, which is filled in place; the wrapper is replaced whenever the record changes. */
  readonly last: Signal<{ readonly record: CallRecord }>;
  readonly running: Signal<AbortController | null>;
  readonly tabs: Signal<ChosenTabs>;
  readonly language: Signal<Language>;
  readonly urls: BlobUrls;
  /** The conversation so far. */
  turns: readonly Turn[];
  sent: Pick<Asked, 'prompt' | 'turns'> | null;
  /** The requested animation frame for a change; 0 for none. */
  frame: number;
  isLoaded: boolean;
}

export function createPlayground(baseUrl: ReadonlySignal<string>): Playground {
  return {
    baseUrl,
    settings: createSettings(),
    key: createKey(),
    prompt: signal(''),
    problem: signal(''),
    exchanges: signal<readonly PlaygroundExchange[]>([]),
    last: signal({ record: emptyRecord() }),
    running: signal<AbortController | null>(null),
    tabs: signal<ChosenTabs>({ current: 0, other: 1 }),
    language: signal<Language>('curl'),
    urls: createBlobUrls(),
    turns: [],
    sent: null,
    frame: 0,
    isLoaded: false,
  };
}

/** Loads the models and groups, once. */
export async function load(playground: Playground): Promise<void> {
  const { settings, key, problem } = playground;
  if (playground.isLoaded) return;
  playground.isLoaded = true;
  try {
    const { demoKey, models } = await askJson<PlaygroundOffer>('/playground/models');
    settings.models.value = models;
    if (demoKey !== null && key.value.value === '') keepKey(key, demoKey);
    const { config } = await askJson<{ readonly config: { readonly groups: Groups } }>('/config');
    const isOpen = (name: string): boolean => config.groups[name]?.models.includes('*') ?? false;
    const names = Object.keys(config.groups);
    key.groups.value = [...names.filter(isOpen), ...names.filter((name) => !isOpen(name))];
  } catch (error) {
    playground.isLoaded = false;
    problem.value = messageOf(error);
  }
}

/** The request for the code: the current prompt, else the last one sent. */
export function askedNow({ settings, prompt, sent, turns }: Playground): Asked {
  const choice = readChoice(settings);
  if (prompt.value === '' && sent !== null) return { choice, ...sent };
  return { choice, prompt: prompt.value || examplePrompt, turns };
}

/** Stops the running call and clears the conversation. */
export function clear(playground: Playground): void {
  const { running, urls, exchanges, problem, last } = playground;
  running.value?.abort();
  running.value = null;
  playground.turns = [];
  playground.sent = null;
  urls.clear();
  exchanges.value = [];
  problem.value = '';
  last.value = { record: emptyRecord() };
}

/** Sends the prompt, and shows its result. */
export async function send(playground: Playground): Promise<void> {
  const { settings, key, prompt, problem, exchanges, last, running, urls, baseUrl } = playground;
  const reason = running.value === null ? missing(playground) : null;
  problem.value = reason ?? '';
  if (reason !== null || running.value !== null) return;
  const choice = readChoice(settings);
  const asked = prompt.value;
  // Only a chat is continued; of any other kind, only the last result is kept.
  if (choice.kind !== 'chat' || playground.turns.length === 0) {
    playground.turns = [];
    urls.clear();
    exchanges.value = [];
  }
  const { turns } = playground;
  const exchange = createPlaygroundExchange(asked);
  exchanges.value = [...exchanges.value, exchange];
  const record = emptyRecord();
  last.value = { record };
  playground.sent = { prompt: asked, turns };
  if (choice.kind === 'chat') prompt.value = '';
  const own = new AbortController();
  running.value = own;
  const answer = emptyAnswer();
  const call: PlaygroundCall = {
    key: key.value.value.trim(),
    signal: own.signal,
    sentAt: performance.now(),
    record,
    exchange,
    urls,
    baseUrl: baseUrl.value,
    onChange: () => schedule(playground, () => exchange.showText(answer)),
  };
  const note = await ended(call, () => run(call, choice, { prompt: asked, turns, answer }));
  // Otherwise the conversation was cleared meanwhile.
  if (running.value !== own) return;
  cancelAnimationFrame(playground.frame);
  playground.frame = 0;
  record.totalMs = performance.now() - call.sentAt;
  exchange.showText(answer);
  exchange.end(record, note ?? (answer.error === null ? null : 'error inside'));
  running.value = null;
  if (choice.kind === 'chat') continueConversation(playground, asked, answer);
  last.value = { record };
}

/** @returns why nothing can be sent, or null */
function missing({ settings, key, prompt }: Playground): string | null {
  if (prompt.value.trim() === '') return 'There is nothing to send.';
  if (key.value.value.trim() === '') return 'A call needs a key.';
  return problemOf(settings);
}

/** Shows changes once before the next frame, however many events arrive. */
function schedule(playground: Playground, show: () => void): void {
  if (playground.frame !== 0) return;
  const { running, last } = playground;
  playground.frame = requestAnimationFrame(() => {
    playground.frame = 0;
    // Signed out meanwhile.
    if (savedToken() === null) running.value?.abort();
    show();
    last.value = { record: last.value.record };
  });
}

/** Adds a prompt and its answer to the conversation. Without an answer, the prompt can be sent again. */
function continueConversation(playground: Playground, asked: string, answer: TextAnswer): void {
  const turn = turnOf(answer);
  if (hasBegun(answer) && (turn.text !== '' || turn.calls.length > 0))
    playground.turns = [...playground.turns, { role: 'user', text: asked }, turn];
  else if (playground.prompt.value === '') playground.prompt.value = asked;
}

interface Sent {
  readonly prompt: string;
  readonly turns: readonly Turn[];
  /** Filled while the answer arrives. */
  readonly answer: TextAnswer;
}

function run(call: PlaygroundCall, choice: Choice, { prompt, turns, answer }: Sent): Promise<void> {
  switch (choice.kind) {
    case 'chat':
      return runChat(call, { choice, prompt, turns, answer });
    case 'image':
      return runImage(call, choice, prompt, answer);
    case 'speech':
      return runSpeech(call, choice, prompt);
    case 'video':
      return runVideo(call, choice, prompt);
  }
}

/** Runs a call to its end. @returns a note on how it ended, or null if it ended regularly */
async function ended(call: PlaygroundCall, run: () => Promise<void>): Promise<string | null> {
  try {
    await run();
    return null;
  } catch (error) {
    if (call.signal.aborted) return 'stopped';
    const isBroken = call.record.status !== null;
    call.exchange.showProblem(isBroken ? `The answer broke off: ${messageOf(error)}` : messageOf(error));
    return isBroken ? 'broken off' : null;
  }
}
