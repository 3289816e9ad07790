import type { Model } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { queryParameter } from '../../wire/query.js';
import { positionOf, wholeNumber } from './page.js';

const defaultPageSize = 50;
const maximumPageSize = 1000;

/**
 * JSON text of one model as generateContent writes it. The token limits are the upstream's and unknown here: null,
 * which JSON readers of protocol buffers take for unset, rather than a number that a client would believe.
 */
export function generateContentModel(model: Model): string {
  return `{"name":${JSON.stringify(`models/${model.name}`)},"version":"001","displayName":${JSON.stringify(model.name)},"description":"","inputTokenLimit":null,"outputTokenLimit":null,"supportedGenerationMethods":["generateContent","streamGenerateContent"]}`;
}

/**
 * JSON text of one page of the generateContent list. As with the vendor, a page size of 0 means the default, and one
 * that is too large means the maximum.
 * @throws GatewayError invalid_value for a page size that is no number, or a page token that is not ours.
 */
export function generateContentModelList(models: readonly Model[], query: string): string {
  const asked = wholeNumber(query, 'pageSize', 0) ?? 0;
  const size = asked === 0 ? defaultPageSize : Math.min(asked, maximumPageSize);
  const token = queryParameter(query, 'pageToken');
  const start = token === '' ? 0 : positionOf(models, readToken(token), 'pageToken') + 1;
  const end = start + size;
  const last = end < models.length ? models[end - 1] : undefined;
  const next = last === undefined ? '' : `,"nextPageToken":"${writeToken(last.name)}"`;
  return `{"models":[${models.slice(start, end).map(generateContentModel).join()}]${next}}`;
}

/** A token is the name of the last model seen: it outlives a reload and a restart, whichever worker reads it. */
function writeToken(name: string): string {
  return Buffer.from(name, 'utf8').toString('base64url');
}

function readToken(token: string): string {
  const name = Buffer.from(token, 'base64url').toString('utf8');
  if (writeToken(name) !== token) {
    throw new GatewayError('invalid_value', `'pageToken' is not a token of this list.`, {
      param: 'pageToken',
    });
  }
  return name;
}
