import type { Model } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import type { ModelListFormat } from '../credentials/credentials.js';
import { anthropic } from '../error-formats/anthropic.js';
import type { ErrorFormat } from '../error-formats/error-format.js';
import { google } from '../error-formats/google.js';
import { openai } from '../error-formats/openai.js';
import { messagesModel, messagesModelList } from './anthropic.js';
import { generateContentModel, generateContentModelList } from './google.js';
import {
  chatAndMessagesModel,
  chatAndMessagesModelList,
  chatModel,
  chatModelList,
  offeredInChatFamily,
} from './openai.js';

interface Face {
  readonly errorFormat: ErrorFormat;
  offers(model: Model): boolean;
  one(model: Model): string;
  list(models: readonly Model[], query: string): string;
}

const faces: Readonly<Record<ModelListFormat, Face>> = {
  chat: { errorFormat: openai, offers: offeredInChatFamily, one: chatModel, list: chatModelList },
  chatAndMessages: {
    errorFormat: openai,
    offers: offeredInChatFamily,
    one: chatAndMessagesModel,
    list: chatAndMessagesModelList,
  },
  messages: {
    errorFormat: anthropic,
    offers: (model) => model.protocols.has('messages'),
    one: messagesModel,
    list: messagesModelList,
  },
  generateContent: {
    errorFormat: google,
    offers: (model) => model.protocols.has('generateContent'),
    one: generateContentModel,
    list: generateContentModelList,
  },
};

/** The error format in which a request for a list of this format is refused. */
export function modelListErrorFormat(format: ModelListFormat): ErrorFormat {
  return faces[format].errorFormat;
}

/**
 * JSON text of a model list.
 * @param models what the key may use, by name, in the order of the list.
 * @param query raw query of the request: the page asked for.
 * @throws GatewayError invalid_value for a bad page.
 */
export function modelList(
  format: ModelListFormat,
  models: ReadonlyMap<string, Model>,
  query: string,
): string {
  const face = faces[format];
  const offered: Model[] = [];
  for (const model of models.values()) {
    if (face.offers(model)) offered.push(model);
  }
  return face.list(offered, query);
}

/**
 * JSON text of one model.
 * @param id as in the path; in the generateContent format it may begin with `models/`.
 * @throws GatewayError model_not_found when the key has no such model in this format.
 */
export function modelObject(format: ModelListFormat, models: ReadonlyMap<string, Model>, id: string): string {
  const face = faces[format];
  const name = format === 'generateContent' ? bareModelName(id) : id;
  const model = models.get(name);
  if (model === undefined || !face.offers(model)) {
    throw new GatewayError(
      'model_not_found',
      `The model '${name}' does not exist or is not available to this key in this format.`,
      { param: 'model' },
    );
  }
  return face.one(model);
}

/** A generateContent model id without the `models/` that its SDKs may write before it. */
export function bareModelName(id: string): string {
  return id.startsWith('models/') ? id.slice('models/'.length) : id;
}
