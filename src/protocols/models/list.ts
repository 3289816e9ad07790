import type { Model, Protocol } from '../../config/types.js';
import { memberError } from '../../wire/json.js';
import { queryParameter } from '../../wire/query.js';
import type { ModelListFormat } from '../credentials/credentials.js';
import { anthropic, type ErrorFormat, google, openai } from '../error-formats/formats.js';
import { bareName } from '../model-path.js';

interface ListFormat {
  readonly errorFormat: ErrorFormat;
  offers(model: Model): boolean;
  one(model: Model): string;
  list(models: readonly Model[], query: string): string;
}

const listFormats: Readonly<Record<ModelListFormat, ListFormat>> = {
  chat: { errorFormat: openai, offers: offeredInChatFamily, one: chatModel, list: chatModelList },
  chatAndMessages: {
    errorFormat: openai,
    offers: (model) => offeredInChatFamily(model) || model.protocols.has('messages'),
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
    offers: (model) => methodsOf(model).length > 0,
    one: generateContentModel,
    list: generateContentModelList,
  },
};

/** Returns the error format for requests of a list in this format. */
export function modelListErrorFormat(format: ModelListFormat): ErrorFormat {
  return listFormats[format].errorFormat;
}

/**
 * Returns the JSON text of a model list.
 * @param models models that the key may use, by name, in the order of the list
 * @param query raw query of the request, with the requested page
 * @throws GatewayError `invalid_value` for an invalid page
 */
export function modelList(
  format: ModelListFormat,
  models: ReadonlyMap<string, Model>,
  query: string,
): string {
  const listFormat = listFormats[format];
  const offered: Model[] = [];
  for (const model of models.values()) {
    if (listFormat.offers(model)) offered.push(model);
  }
  return listFormat.list(offered, query);
}

/**
 * Returns the JSON text of one model.
 * @param id name as in the path; in the generateContent format it may begin with `models/`
 * @throws GatewayError `model_not_found` if the key has no such model in this format
 */
export function modelObject(format: ModelListFormat, models: ReadonlyMap<string, Model>, id: string): string {
  const listFormat = listFormats[format];
  const name = format === 'generateContent' ? bareName(id) : id;
  const model = models.get(name);
  if (model === undefined || !listFormat.offers(model)) {
    throw memberError(
      'model_not_found',
      'model',
      `The model '${name}' does not exist or is not available to this key in this format.`,
    );
  }
  return listFormat.one(model);
}

const defaultPageSize = 50;
const maximumPageSize = 1000;

/**
 * Returns the JSON text of one model in the generateContent format. A token limit that the config does not set is null,
 * which JSON parsers of protocol buffers read as unset: clients would rely on a made-up number.
 */
function generateContentModel(model: Model): string {
  return `{"name":${JSON.stringify(`models/${model.name}`)},"version":"001","displayName":${JSON.stringify(model.name)},"description":"","inputTokenLimit":${model.tokens.input},"outputTokenLimit":${model.tokens.output},"supportedGenerationMethods":${JSON.stringify(methodsOf(model))}}`;
}

const generating = ['generateContent', 'streamGenerateContent', 'countTokens'];
const embedding = ['embedContent', 'batchEmbedContents'];

/** Lists the methods of generateContent that the model supports. */
function methodsOf({ protocols }: Model): readonly string[] {
  return [
    ...(protocols.has('generateContent') ? generating : []),
    ...(protocols.has('embeddings') ? embedding : []),
  ];
}

/**
 * Returns the JSON text of one page of the generateContent list. As at the vendor, a page size of 0 means the default,
 * and one that is too large means the maximum.
 * @throws GatewayError `invalid_value` for a page size that is not a number, or a page token that the gateway did not
 * make
 */
function generateContentModelList(models: readonly Model[], query: string): string {
  const asked = wholeNumber(query, 'pageSize', 0) ?? 0;
  const size = asked === 0 ? defaultPageSize : Math.min(asked, maximumPageSize);
  const token = queryParameter(query, 'pageToken');
  const start = token === '' ? 0 : positionOf(models, readToken(token), 'pageToken') + 1;
  const end = start + size;
  const last = end < models.length ? models[end - 1] : undefined;
  const next = last === undefined ? '' : `,"nextPageToken":"${writeToken(last.name)}"`;
  return `{"models":[${models.slice(start, end).map(generateContentModel).join()}]${next}}`;
}

/**
 * Makes a page token from the name of the last model of the page. It is valid after a reload or restart, and at every
 * worker.
 */
function writeToken(name: string): string {
  return Buffer.from(name, 'utf8').toString('base64url');
}

function readToken(token: string): string {
  const name = Buffer.from(token, 'base64url').toString('utf8');
  if (writeToken(name) !== token) {
    throw memberError('invalid_value', 'pageToken', `'pageToken' is not a token of this list.`);
  }
  return name;
}

/** Returns whether the endpoints of a protocol are OpenAI-shaped. One list of models serves all of these. */
const isOfChatFamily: Readonly<Record<Protocol, boolean>> = {
  chat: true,
  responses: true,
  messages: false,
  generateContent: false,
  completions: true,
  embeddings: true,
  rerank: true,
  moderations: true,
  audio: true,
  images: true,
  video: true,
  realtime: true,
};

function offeredInChatFamily(model: Model): boolean {
  for (const protocol of model.protocols) if (isOfChatFamily[protocol]) return true;
  return false;
}

/** JSON text of one model as the chat family writes it. */
function chatModel(model: Model): string {
  return `{${chatFields(model)}}`;
}

/** JSON text of the chat list, which knows no pages. */
function chatModelList(models: readonly Model[]): string {
  return `{"object":"list","data":[${models.map(chatModel).join()}]}`;
}

/** JSON text of one model with the fields of both the chat and the messages family. */
function chatAndMessagesModel(model: Model): string {
  return `{${chatFields(model)},"type":"model","display_name":${JSON.stringify(model.name)},"created_at":"${createdAt(model)}"}`;
}

/** Returns the JSON text of a chat list that a messages client reads as a last page. */
function chatAndMessagesModelList(models: readonly Model[]): string {
  return `{"object":"list","data":[${models.map(chatAndMessagesModel).join()}],${edges(models, false)}}`;
}

function chatFields(model: Model): string {
  return `"id":${JSON.stringify(model.name)},"object":"model","created":${model.created},"owned_by":"model-gateway"`;
}

/**
 * Reads a whole number from the query.
 * @returns the number, or null if the parameter is absent
 * @throws GatewayError `invalid_value` if it is not a whole number of at least `least`
 */
function wholeNumber(query: string, name: string, least: number): number | null {
  const text = queryParameter(query, name);
  if (text === '') return null;
  const value = /^\d{1,9}$/.test(text) ? Number(text) : -1;
  if (value < least) {
    throw memberError('invalid_value', name, `'${name}' must be a whole number of at least ${least}.`);
  }
  return value;
}

/**
 * Finds the position of a cursor in a list.
 * @throws GatewayError `invalid_value` if the list has no such model; `param` names the cursor's parameter
 */
function positionOf(models: readonly Model[], name: string, param: string): number {
  const index = models.findIndex((model) => model.name === name);
  if (index === -1) {
    throw memberError('invalid_value', param, `'${param}' does not point into this list.`);
  }
  return index;
}

const defaultLimit = 20;
const maximumLimit = 1000;

/** Returns the time when the catalogue first listed the model, as RFC 3339 text. */
function createdAt(model: Model): string {
  return `${new Date(model.created * 1000).toISOString().slice(0, -5)}Z`;
}

/** Returns the JSON text of one model in the messages format. */
function messagesModel(model: Model): string {
  const name = JSON.stringify(model.name);
  return `{"type":"model","id":${name},"display_name":${name},"created_at":"${createdAt(model)}","capabilities":null,"max_input_tokens":${model.tokens.input},"max_tokens":${model.tokens.output},"lifecycle":"active","line":null,"deprecated_at":null,"retires_at":null}`;
}

/**
 * Returns the JSON text of one page of the messages list: `limit` models after `after_id` or before `before_id`.
 * @throws GatewayError `invalid_value` for an invalid limit or cursor, or for both cursors together
 */
function messagesModelList(all: readonly Model[], query: string): string {
  const limit = wholeNumber(query, 'limit', 1) ?? defaultLimit;
  if (limit > maximumLimit) {
    throw memberError('invalid_value', 'limit', `'limit' must not be above ${maximumLimit}.`);
  }
  const after = queryParameter(query, 'after_id');
  const before = queryParameter(query, 'before_id');
  if (after !== '' && before !== '') {
    throw memberError('invalid_value', 'before_id', `'after_id' and 'before_id' cannot be used together.`);
  }
  if (before !== '') {
    const end = positionOf(all, before, 'before_id');
    const start = Math.max(0, end - limit);
    return listsActive(query) ? page(all.slice(start, end), start > 0) : page([], false);
  }
  const start = after === '' ? 0 : positionOf(all, after, 'after_id') + 1;
  if (!listsActive(query)) return page([], false);
  return page(all.slice(start, start + limit), start + limit < all.length);
}

/** Whether a query asks for models whose `lifecycle` is active, as that of each model is. */
function listsActive(query: string): boolean {
  if (!query.includes('lifecycle')) return true;
  const asked = new URLSearchParams(query);
  const stages = [...asked.getAll('lifecycle[]'), ...asked.getAll('lifecycle')]
    .flatMap((stage) => stage.split(','))
    .filter((stage) => stage !== '');
  return stages.length === 0 || stages.includes('active');
}

function page(models: readonly Model[], hasMore: boolean): string {
  return `{"data":[${models.map(messagesModel).join()}],${edges(models, hasMore)}}`;
}

/** Writes the members with which a client requests the previous or next page. */
function edges(models: readonly Model[], hasMore: boolean): string {
  const firstId = JSON.stringify(models[0]?.name ?? null);
  const lastId = JSON.stringify(models.at(-1)?.name ?? null);
  return `"has_more":${hasMore},"first_id":${firstId},"last_id":${lastId}`;
}
