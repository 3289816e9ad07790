import { askJson, savedToken } from '../api.js';
import { fill, h, setText } from '../dom.js';
import type { View } from '../view.js';
import { messageOf } from '../words.js';
import { createBlobUrls } from './playground/blob-urls.js';
import type { PlaygroundCall } from './playground/call.js';
import { type Choice, type PlaygroundModel, protocolsOf } from './playground/choice.js';
import type { Asked } from './playground/code/samples.js';
import { createCodePane } from './playground/code-pane.js';
import { createComposer } from './playground/composer.js';
import type { Turn } from './playground/conversation.js';
import { createEventsPane } from './playground/events-pane.js';
import { createExchange } from './playground/exchange.js';
import { createKeyField } from './playground/key-field.js';
import { type CallRecord, emptyRecord } from './playground/record.js';
import { runChat } from './playground/run-chat.js';
import { runImage, runSpeech } from './playground/run-media.js';
import { runVideo } from './playground/run-video.js';
import { createSettings } from './playground/settings.js';
import { createTabs } from './playground/tabs.js';
import { emptyAnswer, hasBegun, type TextAnswer, turnOf } from './playground/text-answer.js';
import { createTimingPane } from './playground/timing-pane.js';

/** Shown in the code as long as nothing is asked. */
const examplePrompt = 'Hello';
/** Shown in the code until the gateway has said its own. */
const usualUrl = 'http://127.0.0.1:8080';
/** From here on there is room for the settings beside the answers. */
const wideScreen = '(min-width: 64rem)';
/** From here on there is room for two panels beside each other. */
const widestScreen = '(min-width: 110rem)';

/** Playground: a call of any kind that the operator tries, what comes of it, and the code that would do the same. */
export function createPlaygroundView(): View {
  let baseUrl = '';
  let turns: readonly Turn[] = [];
  let sent: Pick<Asked, 'prompt' | 'turns'> | null = null;
  let record: CallRecord = emptyRecord();
  let running: AbortController | null = null;
  let frame = 0;
  const urls = createBlobUrls();

  const settings = createSettings(() => changed());
  const key = createKeyField();
  const composer = createComposer({
    onSend: () => void send(),
    onStop: () => running?.abort(),
    onClear: () => clear(),
    onInput: () => changed(),
  });
  const problem = h('p', { class: 'problem', attributes: { role: 'alert' } });
  const exchanges = h('ol', { class: 'exchanges', attributes: { 'aria-live': 'polite' } });
  const empty = h('p', { class: 'empty' }, 'What you send is answered here.');
  const answerPane = h('div', { class: 'pane' }, empty, exchanges);
  const events = createEventsPane();
  const timing = createTimingPane();
  const code = createCodePane();
  const panels = [
    { title: 'Answer', panel: answerPane },
    { title: 'Events', panel: events.element, onShow: () => events.update(record) },
    { title: 'Timing', panel: timing.element, onShow: () => timing.update(record) },
    { title: 'Code', panel: code.element, onShow: () => showCode() },
  ];
  const tabs = createTabs('What came of it', panels, () => matchMedia(widestScreen).matches);
  const summary = h('summary', {});
  const side = h(
    'details',
    { class: 'side panel' },
    summary,
    h('div', { class: 'settings' }, settings.element, key.element),
  );
  const element = h(
    'section',
    { class: 'playground' },
    h('h2', {}, 'Playground'),
    h(
      'div',
      { class: 'bench' },
      side,
      h('div', { class: 'work panel' }, tabs.list, ...tabs.panels, problem, composer.element),
    ),
  );
  new ResizeObserver(() => {
    if (matchMedia(wideScreen).matches) side.open = true;
    tabs.refresh();
  }).observe(element);

  function changed(): void {
    // It is called while the settings are being made, too.
    queueMicrotask(() => {
      const { kind, protocol, settings: chosen } = settings.read();
      const title = protocolsOf[kind].find(({ name }) => name === protocol)?.title ?? '';
      composer.showKind(kind);
      setText(summary, `Settings: ${[title, chosen.model].filter((each) => each !== '').join(', ')}`);
      if (!code.element.hidden) showCode();
    });
  }

  function showCode(): void {
    const choice = settings.read();
    const prompt = composer.prompt;
    const asked = prompt === '' && sent !== null ? sent : { prompt: prompt || examplePrompt, turns };
    code.show({ choice, ...asked }, baseUrl === '' ? usualUrl : baseUrl);
  }

  function clear(): void {
    running?.abort();
    running = null;
    composer.showRunning(false);
    turns = [];
    sent = null;
    record = emptyRecord();
    urls.clear();
    fill(exchanges, []);
    empty.hidden = false;
    setText(problem, '');
    showRecord();
    changed();
    composer.focus();
  }

  function showRecord(): void {
    if (!events.element.hidden) events.update(record);
    if (!timing.element.hidden) timing.update(record);
  }

  function missing(): string | null {
    if (composer.prompt.trim() === '') return 'There is nothing to send.';
    if (key.value === '') return 'A call needs a key.';
    return settings.problem();
  }

  async function send(): Promise<void> {
    const reason = running === null ? missing() : null;
    setText(problem, reason ?? '');
    if (reason !== null || running !== null) return;
    const choice = settings.read();
    const prompt = composer.prompt;
    // Only a chat goes on; of anything else, the last one is kept.
    if (choice.kind !== 'chat' || turns.length === 0) {
      turns = [];
      urls.clear();
      fill(exchanges, []);
    }
    const exchange = createExchange(prompt);
    exchanges.append(exchange.element);
    empty.hidden = true;
    record = emptyRecord();
    sent = { prompt, turns };
    if (choice.kind === 'chat') composer.prompt = '';
    const own = new AbortController();
    running = own;
    composer.showRunning(true);
    const answer = emptyAnswer();
    const call: PlaygroundCall = {
      key: key.value,
      signal: own.signal,
      sentAt: performance.now(),
      record,
      exchange,
      urls,
      baseUrl,
      onChange: () => schedule(() => exchange.showText(answer)),
    };
    const note = await ended(call, () => run(call, choice, prompt, answer));
    // Else it was cleared away meanwhile.
    if (running !== own) return;
    cancelAnimationFrame(frame);
    frame = 0;
    call.record.totalMs = performance.now() - call.sentAt;
    exchange.showText(answer);
    exchange.end(call.record, note ?? (answer.error === null ? null : 'error inside'));
    running = null;
    composer.showRunning(false);
    if (choice.kind === 'chat') goOn(prompt, answer);
    showRecord();
    keepInSight();
  }

  function run(call: PlaygroundCall, choice: Choice, prompt: string, answer: TextAnswer): Promise<void> {
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

  /** What has no answer is no part of the conversation, and can be sent again. */
  function goOn(prompt: string, answer: TextAnswer): void {
    const { text, calls } = turnOf(answer);
    if (hasBegun(answer) && (text !== '' || calls.length > 0))
      turns = [...turns, { role: 'user', text: prompt }, turnOf(answer)];
    else if (composer.prompt === '') composer.prompt = prompt;
  }

  /** Shows what is new once before the next frame, however many events come. */
  function schedule(show: () => void): void {
    if (frame !== 0) return;
    frame = requestAnimationFrame(() => {
      frame = 0;
      // Nobody is signed in any more.
      if (savedToken() === null) running?.abort();
      show();
      showRecord();
      keepInSight();
    });
  }

  function keepInSight(): void {
    if (!answerPane.hidden) answerPane.scrollTop = answerPane.scrollHeight;
  }

  let isLoaded = false;
  async function load(): Promise<void> {
    isLoaded = true;
    try {
      const { demoKey, models } = await askJson<PlaygroundOffer>('/playground/models');
      settings.showModels(models);
      key.offer(demoKey);
      const { config } = await askJson<{ readonly config: { readonly groups: Groups } }>('/config');
      const isOpen = (name: string): boolean => config.groups[name]?.models.includes('*') ?? false;
      const names = Object.keys(config.groups);
      key.showGroups([...names.filter(isOpen), ...names.filter((name) => !isOpen(name))]);
    } catch (error) {
      isLoaded = false;
      setText(problem, messageOf(error));
    }
  }

  return {
    element,
    show() {
      if (!isLoaded) void load();
    },
    onState({ gateway }) {
      if (gateway.url === baseUrl) return;
      baseUrl = gateway.url;
      changed();
    },
  };
}

/** What `GET /playground/models` says. */
interface PlaygroundOffer {
  /** The key that everybody may read; null but for the demo. */
  readonly demoKey: string | null;
  readonly models: readonly PlaygroundModel[];
}

/** Of the config: the models that each group opens, or `*` for all. */
type Groups = Readonly<Record<string, { readonly models: readonly string[] }>>;

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
