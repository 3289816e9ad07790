import { computed, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import {
  type Choice,
  type Kind,
  modelsFor,
  type PlaygroundModel,
  type ProtocolEntry,
  protocolsOf,
} from './choice.js';
import { isObject, type JsonObject, parseJson } from './json.js';
import { type ImageSettings, speechFormats } from './media-request.js';
import { videoSizes } from './video-request.js';

/** The content of a number field. */
export interface TypedNumber {
  /** Empty for no number or an invalid one. */
  readonly text: string;
  readonly isBad: boolean;
}

/** The kind of output, its protocol and model, and its settings. The choices of each kind are kept. */
export interface Settings {
  readonly kind: Signal<Kind>;
  /** Null until loaded from the gateway. */
  readonly models: Signal<readonly PlaygroundModel[] | null>;
  readonly protocols: Signal<Readonly<Partial<Record<Kind, string>>>>;
  readonly chosenModels: Signal<Readonly<Partial<Record<Kind, string>>>>;
  readonly protocol: ReadonlySignal<ProtocolEntry>;
  /** The models offered for the kind. */
  readonly offered: ReadonlySignal<readonly string[]>;
  /** Empty if none is offered. */
  readonly model: ReadonlySignal<string>;
  readonly chat: ChatFields;
  readonly image: Signal<Omit<ImageSettings, 'model'>>;
  readonly speech: SpeechFields;
  readonly video: VideoFields;
}

interface ChatFields {
  readonly system: Signal<string>;
  readonly maxTokens: Signal<TypedNumber>;
  readonly temperature: Signal<TypedNumber>;
  readonly stream: Signal<boolean>;
  /** JSON, as typed. */
  readonly extra: Signal<string>;
}

interface SpeechFields {
  readonly voice: Signal<string>;
  readonly format: Signal<string>;
  readonly speed: Signal<TypedNumber>;
}

interface VideoFields {
  readonly size: Signal<string>;
  readonly seconds: Signal<TypedNumber>;
}

export const voices = ['alloy', 'ash', 'coral', 'echo', 'fable', 'nova', 'onyx', 'sage', 'shimmer'];

const usualSeconds = 4;
const leastSpeed = 0.25;
const maxSpeed = 4;
const maxSeconds = 60;

export function createSettings(): Settings {
  const kind = signal<Kind>('chat');
  const models = signal<readonly PlaygroundModel[] | null>(null);
  const protocols = signal<Readonly<Partial<Record<Kind, string>>>>({});
  const chosenModels = signal<Readonly<Partial<Record<Kind, string>>>>({});
  const protocol = computed(() => {
    const entries = protocolsOf[kind.value];
    const name = protocols.value[kind.value];
    return entries.find((each) => each.name === name) ?? (entries[0] as ProtocolEntry);
  });
  const offered = computed(() =>
    models.value === null ? [] : modelsFor(kind.value, protocol.value.name, models.value),
  );
  const model = computed(() => {
    const chosen = chosenModels.value[kind.value] ?? '';
    return offered.value.includes(chosen) ? chosen : (offered.value[0] ?? '');
  });
  return {
    kind,
    models,
    protocols,
    chosenModels,
    protocol,
    offered,
    model,
    chat: {
      system: signal(''),
      maxTokens: typed(''),
      temperature: typed(''),
      stream: signal(true),
      extra: signal(''),
    },
    image: signal({ size: '1024x1024', result: 'b64_json', ratio: '1:1', resolution: '' }),
    speech: {
      voice: signal(voices[0] as string),
      format: signal(speechFormats[0] as string),
      speed: typed(''),
    },
    video: { size: signal(Object.keys(videoSizes)[0] as string), seconds: typed(`${usualSeconds}`) },
  };
}

/** The current settings. */
export function readChoice(settings: Settings): Choice {
  const kind = settings.kind.value;
  const fields = { model: settings.model.value, ...fieldsOf(settings, kind) };
  // The options of the protocol are those of the kind, and so are the fields.
  return { kind, protocol: settings.protocol.value.name, settings: fields } as Choice;
}

/** The object merged over the body of a chat; null if the typed text is not an object. */
export function extraOf({ extra }: ChatFields): JsonObject | null {
  const text = extra.value.trim();
  const value = text === '' ? {} : parseJson(text);
  return isObject(value) ? (value as JsonObject) : null;
}

function fieldsOf({ chat, image, speech, video }: Settings, kind: Kind): object {
  switch (kind) {
    case 'chat':
      return {
        system: chat.system.value,
        maxTokens: numberIn(chat.maxTokens.value),
        temperature: numberIn(chat.temperature.value),
        stream: chat.stream.value,
        extra: extraOf(chat) ?? {},
      };
    case 'image':
      return image.value;
    case 'speech':
      return {
        voice: speech.voice.value.trim(),
        format: speech.format.value,
        speed: numberIn(speech.speed.value),
      };
    case 'video':
      return { size: video.size.value, seconds: numberIn(video.seconds.value) ?? usualSeconds };
  }
}

/** @returns why the settings are invalid, or null */
export function problemOf(settings: Settings): string | null {
  if (settings.model.value === '') return 'There is no model to ask.';
  const { chat, speech, video } = settings;
  switch (settings.kind.value) {
    case 'chat':
      if (extraOf(chat) === null) return 'The field “More fields” holds no JSON object.';
      if (!isWhole(chat.maxTokens.value, 1)) return 'Max tokens must be a whole number of at least 1.';
      // The upper bound differs by model and is left to the gateway.
      return chat.temperature.value.isBad ? 'Temperature must be a number.' : null;
    case 'image':
      return null;
    case 'speech': {
      if (speech.voice.value.trim() === '') return 'A speech needs a voice.';
      const speed = numberIn(speech.speed.value) ?? 1;
      const isWrong = speech.speed.value.isBad || speed < leastSpeed || speed > maxSpeed;
      return isWrong ? `Speed must be from ${leastSpeed} to ${maxSpeed}.` : null;
    }
    case 'video': {
      const { seconds } = video;
      const isRight = seconds.value.text !== '' && isWhole(seconds.value, 1, maxSeconds);
      return isRight ? null : `Seconds must be a whole number from 1 to ${maxSeconds}.`;
    }
  }
}

function typed(text: string): Signal<TypedNumber> {
  return signal({ text, isBad: false });
}

function numberIn({ text }: TypedNumber): number | null {
  return text === '' ? null : Number(text);
}

/** Whether a field holds a whole number within bounds, or is empty. */
function isWhole(number: TypedNumber, least: number, most = Number.POSITIVE_INFINITY): boolean {
  const value = numberIn(number);
  return !number.isBad && (value === null || (Number.isInteger(value) && value >= least && value <= most));
}
