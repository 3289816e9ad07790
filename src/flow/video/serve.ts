import { GatewayError } from '../../errors.js';
import type { VideoRoute } from '../../routes.js';
import {
  compatForm,
  compatGuard,
  readCompatBody,
  readCompatForm,
} from '../../video/client-formats/compat.js';
import { genericGuard, readGenericBody } from '../../video/client-formats/generic.js';
import {
  queryGuard,
  readAction,
  readVendorjQuery,
  readVendorjSubmit,
  submitGuard,
} from '../../video/client-formats/vendorj.js';
import { readVendorkBody, vendorkGuard } from '../../video/client-formats/vendork.js';
import { clientFormats } from '../../video/formats.js';
import type { VideoFormat, VideoRequest } from '../../video/task.js';
import { type JsonObject, parseJson, parseObject } from '../../wire/json.js';
import { checkMembers, type MemberGuard } from '../../wire/member-guard.js';
import { isMultipart } from '../../wire/multipart-type.js';
import { queryParameter } from '../../wire/query.js';
import { hasRepeatedNames } from '../../wire/repeated-names.js';
import { WholeForm } from '../body/whole-form.js';
import type { AuthenticatedCall, Call } from '../call.js';
import type { Services } from '../services.js';
import { answerAsync, answerJson } from '../upstream/waiting-client.js';
import { findTask, showContext, shownTask, taskNotFound } from './answer.js';
import { createTask } from './create.js';
import { refreshed } from './poll.js';

/** Creates the task that a call's body requests. */
export function serveCreate(
  services: Services,
  call: AuthenticatedCall,
  { format, operation }: VideoRoute,
): void {
  createTask(services, call, withBytes(call, readers[format](call, operation)));
}

/**
 * Whether a call of a path that both creates and shows tasks creates one.
 * @throws {GatewayError} of status 400 for a query that names neither action
 */
export function createsTask({ exchange }: Call): boolean {
  const { query } = exchange.head;
  return readAction({ get: (name) => queryParameter(query, name) }) === 'submit';
}

/** Serves a path that creates or shows tasks, by the action in its query. */
export function serveAction(services: Services, call: AuthenticatedCall): void {
  if (createsTask(call)) {
    createTask(services, call, withBytes(call, readSubmit(call)));
    return;
  }
  showTask(services, call, 'vendorj', readVendorjQuery(jsonOf(call, queryGuard)).id);
}

/** A body in which a name occurs twice is written anew, as it was read: an upstream might use the other one. */
function withBytes(call: Call, request: VideoRequest): VideoRequest {
  const body = call.wholeBody();
  return request.form === null && !hasRepeatedNames(body) ? { ...request, json: body } : request;
}

function readSubmit(call: Call): VideoRequest {
  const { video = null } = call.running.snapshot.defaultModels;
  return readVendorjSubmit(jsonOf(call, submitGuard), video);
}

/** Readers of a request body, by the format of its route. */
const readers: Readonly<Record<VideoFormat, (call: Call, operation: 'text' | 'image') => VideoRequest>> = {
  compat: (call) =>
    isMultipart(call.exchange.head.contentType)
      ? readCompatForm(new WholeForm(call, call.wholeBody(), compatForm).parts)
      : readCompatBody(jsonOf(call, compatGuard, [...jsonTypes, 'multipart/form-data'])),
  vendork: (call, operation) => readVendorkBody(jsonOf(call, vendorkGuard), operation),
  vendorj: readSubmit,
  generic: (call) => readGenericBody(jsonOf(call, genericGuard)),
};

const jsonTypes = ['application/json'];
const jsonType = /^[\w.+-]+\/(?:[\w.+-]+\+)?json$/i;
const longestEcho = 100;

/**
 * Parses a JSON body. JSON is accepted under any content type.
 * @param guard guard of the route's bodies; its findings are kept with the call
 * @param types content types that the route accepts
 * @throws {GatewayError} of status 415 for a body that is not JSON by its content type; of status 400 for any other that
 * is not a JSON object, or whose members are ambiguous
 */
function jsonOf(call: Call, guard: MemberGuard, types: readonly string[] = jsonTypes): JsonObject {
  const text = call.jsonBody().toString('utf8');
  const body = parseObject(text);
  if (body !== null) {
    call.steering = checkMembers(call.wholeBody(), guard).steering;
    return body;
  }
  const type = (call.exchange.head.contentType.split(';')[0] ?? '').trim();
  if (type === '' || jsonType.test(type) || parseJson(text) !== undefined)
    throw new GatewayError('invalid_json', 'The request body is not a valid JSON object.');
  throw new GatewayError(
    'unsupported_media_type',
    `The content type '${type.slice(0, longestEcho)}' is not taken here. Send the body as ${types.join(' or ')}.`,
  );
}

/** Answers with a task's status, in the format of the request, whichever format created the task. */
export function showTask(services: Services, call: Call, format: VideoFormat, id: string): void {
  const clientFormat = clientFormats[format];
  answerAsync(services, call, async (waiting) => {
    const booked = await findTask(services, call, id);
    const context = showContext(call, id);
    if (booked === null) {
      const missing = clientFormat.missing(id, context);
      if (missing === null) throw taskNotFound(id);
      answerJson(services, call, 200, missing);
      return;
    }
    const task = await refreshed(services, call, booked, (request) => waiting.collect(request));
    answerJson(services, call, 200, clientFormat.shown(shownTask(call, task), context));
  });
}
