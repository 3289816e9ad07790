import { type JsonObject, parseObject } from '../../conversation/json.js';
import { queryParameter } from '../../dialects/query.js';
import { GatewayError } from '../../errors.js';
import type { VideoRoute } from '../../routes.js';
import { readCompatBody, readCompatForm } from '../../video/faces/compat.js';
import { readGenericBody } from '../../video/faces/generic.js';
import { readAction, readVendorjQuery, readVendorjSubmit } from '../../video/faces/vendorj.js';
import { readVendorkBody } from '../../video/faces/vendork.js';
import type { VideoFormat, VideoRequest } from '../../video/task.js';
import { isMultipart } from '../../wire/multipart.js';
import type { Call } from '../call.js';
import type { Services } from '../services.js';
import { WholeForm } from '../whole-form.js';
import { createTask } from './create.js';
import { showTask } from './show.js';

/** Makes the task that a call's body asks for. */
export function takeCreate(services: Services, call: Call, { format, operation }: VideoRoute): void {
  createTask(services, call, readRequest(call, format, operation));
}

/** One path that makes tasks and shows them, as its query says. */
export function takeAction(services: Services, call: Call): void {
  const { query } = call.exchange.head;
  if (readAction({ get: (name) => queryParameter(query, name) }) === 'submit') {
    createTask(services, call, readVendorjSubmit(jsonOf(call)));
    return;
  }
  showTask(services, call, 'vendorj', readVendorjQuery(jsonOf(call)).id);
}

function readRequest(call: Call, format: VideoFormat, operation: 'text' | 'image'): VideoRequest {
  switch (format) {
    case 'compat':
      return isMultipart(call.exchange.head.contentType)
        ? readCompatForm(new WholeForm(call, call.body as Buffer).parts)
        : readCompatBody(jsonOf(call, [...jsonTypes, 'multipart/form-data']));
    case 'vendork':
      return readVendorkBody(jsonOf(call), operation);
    case 'vendorj':
      return readVendorjSubmit(jsonOf(call));
    case 'generic':
      return readGenericBody(jsonOf(call));
  }
}

const jsonTypes = ['application/json'];
const jsonType = /^[\w.+-]+\/(?:[\w.+-]+\+)?json$/i;
const longestEcho = 100;

/**
 * JSON is taken under any content type.
 * @param types that the route takes
 * @throws {GatewayError} of status 415 for a body that is something else by its content type, and of status 400 for any
 * other that is no JSON object
 */
function jsonOf(call: Call, types: readonly string[] = jsonTypes): JsonObject {
  const text = (call.body as Buffer).toString('utf8');
  const body = parseObject(text);
  if (body !== null) return body;
  const type = (call.exchange.head.contentType.split(';')[0] ?? '').trim();
  if (type === '' || jsonType.test(type) || isJson(text))
    throw new GatewayError('invalid_json', 'The request body is not a valid JSON object.');
  throw new GatewayError(
    'unsupported_media_type',
    `The content type '${type.slice(0, longestEcho)}' is not taken here. Send the body as ${types.join(' or ')}.`,
  );
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
