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

/** Shown in the code as long as nothing is asked. */
const examplePrompt = 'Hello';

/** What `GET /playground/models` says. */
interface PlaygroundOffer {
  /** The key that everybody may read; null but for the demo. */
  readonly demoKey: string | null;
  readonly models: readonly PlaygroundModel[];
}

/** Of the config: the models that each group opens, or `*` for all. */
type Groups = Readonly<Record<string, { readonly models: readonly string[] }>>;

/** What is tried in the playground; a call goes on while the view is out of sight. */
export interface Playground {
  /** The gateway's own address; empty until it has said it. */
  readonly baseUrl: ReadonlySignal<string>;
  readonly settings: Settings;
  readonly key: PlaygroundKey;
  readonly prompt: Signal<string>;
  /** Why nothing was sent; empty where it was. */
  readonly problem: Signal<string>;
  readonly exchanges: Signal<readonly PlaygroundExchange[]>;
  /** Of the last call. Another object whenever there is something new in the record, which fills in place. */
  readonly last: Signal<{ readonly record: CallRecord }>;
  readonly running: Signal<AbortController | null>;
  readonly tabs: Signal<ChosenTabs>;
  readonly language: Signal<Language>;
  readonly urls: BlobUrls;
  /** Of the conversation so far. */
  turns: readonly Turn[];
  sent: Pick<Asked, 'prompt' | 'turns'> | null;
  /** The frame before which something new is shown; 0 for none. */
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

/** Asks once for the models and groups that there are. */
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

/** What the code is to do: what stands in the prompt, else what was sent last. */
export function askedNow({ settings, prompt, sent, turns }: Playground): Asked {
  const choice = readChoice(settings);
  if (prompt.value === '' && sent !== null) return { choice, ...sent };
  return { choice, prompt: prompt.value || examplePrompt, turns };
}

/** Stops the call under way and forgets the conversation. */
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

/** Sends what stands in the prompt, and shows what comes of it. */
export async function send(playground: Playground): Promise<void> {
  const { settings, key, prompt, problem, exchanges, last, running, urls, baseUrl } = playground;
  const reason = running.value === null ? missing(playground) : null;
  problem.value = reason ?? '';
  if (reason !== null || running.value !== null) return;
  const choice = readChoice(settings);
  const asked = prompt.value;
  // Only a chat goes on; of anything else, the last one is kept.
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
  // Else it was cleared away meanwhile.
  if (running.value !== own) return;
  cancelAnimationFrame(playground.frame);
  playground.frame = 0;
  record.totalMs = performance.now() - call.sentAt;
  exchange.showText(answer);
  exchange.end(record, note ?? (answer.error === null ? null : 'error inside'));
  running.value = null;
  if (choice.kind === 'chat') goOn(playground, asked, answer);
  last.value = { record };
}

/** @returns why nothing can be sent, or null */
function missing({ settings, key, prompt }: Playground): string | null {
  if (prompt.value.trim() === '') return 'There is nothing to send.';
  if (key.value.value.trim() === '') return 'A call needs a key.';
  return problemOf(settings);
}

/** Shows what is new once before the next frame, however many events come. */
function schedule(playground: Playground, show: () => void): void {
  if (playground.frame !== 0) return;
  const { running, last } = playground;
  playground.frame = requestAnimationFrame(() => {
    playground.frame = 0;
    // Nobody is signed in any more.
    if (savedToken() === null) running.value?.abort();
    show();
    last.value = { record: last.value.record };
  });
}

/** What has no answer is no part of the conversation, and can be sent again. */
function goOn(playground: Playground, asked: string, answer: TextAnswer): void {
  const turn = turnOf(answer);
  if (hasBegun(answer) && (turn.text !== '' || turn.calls.length > 0))
    playground.turns = [...playground.turns, { role: 'user', text: asked }, turn];
  else if (playground.prompt.value === '') playground.prompt.value = asked;
}

interface Sent {
  readonly prompt: string;
  readonly turns: readonly Turn[];
  /** Filled while the answer comes. */
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

/** Runs a call to its end. @returns how it ended where it did not end by itself */
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
