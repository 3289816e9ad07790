import type { Turn } from './conversation.js';
import type { GatewayRequest } from './gateway-request.js';
import {
  type ImageProtocol,
  type ImageSettings,
  imageRequest,
  type SpeechSettings,
  speechRequest,
} from './media-request.js';
import { type TextProtocol, type TextSettings, textRequest } from './text-request.js';
import { type VideoFormat, type VideoSettings, videoRequest } from './video-request.js';

/** The kind of output, with its protocol and settings. */
export type Choice =
  | { readonly kind: 'chat'; readonly protocol: TextProtocol; readonly settings: TextSettings }
  | { readonly kind: 'image'; readonly protocol: ImageProtocol; readonly settings: ImageSettings }
  | { readonly kind: 'speech'; readonly protocol: 'speech'; readonly settings: SpeechSettings }
  | { readonly kind: 'video'; readonly protocol: VideoFormat; readonly settings: VideoSettings };

export type Kind = Choice['kind'];
type PlaygroundProtocol = Choice['protocol'];

/** A protocol of a kind. */
export interface ProtocolEntry {
  readonly name: PlaygroundProtocol;
  readonly title: string;
  /** The protocols of the config that a model has to have, all of them. */
  readonly offeredAs: readonly string[];
}

/** The text protocols, the default first. */
const textTitles: Readonly<Record<TextProtocol, string>> = {
  chat: 'Chat completions',
  responses: 'Responses',
  messages: 'Messages',
  generateContent: 'generateContent',
};

/** The protocols of each kind, the default first. */
export const protocolsOf: Readonly<Record<Kind, readonly ProtocolEntry[]>> = {
  chat: (Object.keys(textTitles) as TextProtocol[]).map((name) => ({
    name,
    title: textTitles[name],
    offeredAs: [name],
  })),
  image: [
    { name: 'images', title: 'Images', offeredAs: ['images'] },
    { name: 'imagesInput', title: 'Images, input form', offeredAs: ['images'] },
    // By the config, a model with generateContent alone makes only text.
    { name: 'generateContent', title: 'generateContent', offeredAs: ['generateContent', 'images'] },
  ],
  speech: [{ name: 'speech', title: 'Speech', offeredAs: ['audio'] }],
  video: [
    { name: 'compat', title: 'Videos (compat)', offeredAs: ['video'] },
    { name: 'generic', title: 'Video generations (generic)', offeredAs: ['video'] },
    { name: 'vendork', title: 'Text to video (vendork)', offeredAs: ['video'] },
    { name: 'vendorj', title: 'Submit task (vendorj)', offeredAs: ['video'] },
  ],
};

/** A model in the answer of `GET /playground/models`. */
export interface PlaygroundModel {
  readonly name: string;
  readonly protocols: readonly string[];
}

/** Names of models that are likely to serve a kind, if other models of their protocol do not. */
const likelyNames: Partial<Readonly<Record<Kind, RegExp>>> = { speech: /speech|tts|voice/i };

/** The models that serve a kind by a protocol, those with likely names first. */
export function modelsFor(
  kind: Kind,
  protocol: PlaygroundProtocol,
  models: readonly PlaygroundModel[],
): string[] {
  const offeredAs = protocolsOf[kind].find(({ name }) => name === protocol)?.offeredAs ?? [];
  const isOffered = ({ protocols }: PlaygroundModel): boolean =>
    offeredAs.every((each) => protocols.includes(each));
  const names = models.filter(isOffered).map(({ name }) => name);
  const likely = likelyNames[kind];
  if (likely === undefined) return names;
  return [...names.filter((name) => likely.test(name)), ...names.filter((name) => !likely.test(name))];
}

/**
 * The request of a choice.
 * @param turns the conversation so far; only chat has one
 */
export function requestOf(choice: Choice, prompt: string, turns: readonly Turn[]): GatewayRequest {
  switch (choice.kind) {
    case 'chat':
      return textRequest(choice.protocol, choice.settings, [...turns, { role: 'user', text: prompt }]);
    case 'image':
      return imageRequest(choice.protocol, choice.settings, prompt);
    case 'speech':
      return speechRequest(choice.settings, prompt);
    case 'video':
      return videoRequest(choice.protocol, choice.settings, prompt);
  }
}
