import { performance } from 'node:perf_hooks';
import { GatewayError } from '../errors.js';
import { bodyTooLarge } from '../http/body.js';
import type { Exchange } from '../http/exchange.js';
import { checkVendorcVersion, presentedKey, unwritableHeader } from '../protocols/credentials/credentials.js';
import { openai } from '../protocols/error-formats/formats.js';
import { methodNotAllowed, type Route, unknownOperation, unknownUrl } from '../routes.js';
import { type CompiledSchema, type ValidatedBody, validateBody } from '../schema/accept.js';
import { mostGateways } from '../wire/gateway-loop.js';
import { invalidJson } from '../wire/json-fault.js';
import { queryParameter } from '../wire/query.js';
import { Intake } from './body/intake.js';
import { Upload } from './body/upload.js';
import { type AuthenticatedCall, Call, type ResolvedCall } from './call.js';
import { answerById } from './conversation/by-id.js';
import { recall } from './conversation/recall.js';
import { imagePhaseOf } from './images/draw.js';
import { serveImages } from './images/serve.js';
import { admitResolved, admitThen, refuseUncounted, requireOutputLimit } from './limits/admit.js';
import { setHeldBytes } from './memory-budget.js';
import { answerModels, modelsErrorFormat } from './models.js';
import { openSession } from './realtime/open.js';
import { account } from './record/account.js';
import { requirePathModel, resolveModel, writePathModel } from './resolve.js';
import { ResponsesSocket } from './responses-socket/socket.js';
import type { SocketCall } from './responses-socket/upstream-session.js';
import type { Services } from './services.js';
import { takeSlot } from './sockets/take-slot.js';
import { refuseClosedToolModels } from './tool-models.js';
import { forward } from './upstream/forward.js';
import { serveContent } from './video/content-relay.js';
import { createsTask, serveAction, serveCreate, showTask } from './video/serve.js';

/**
 * Serves one request in these steps: route, authenticate, take a request and a slot of the limits of its key (`admit`), read
 * the body while memory allows, validate, resolve the model, recall what it continues from, take what else it needs of its
 * limits, forward, relay, account.
 * A refusal that is known immediately is thrown and ends the call in `endThrown` of `refuse`. The code that waited for a
 * later refusal answers it with `refuse`. A relayed answer that has begun ends in `AnswerEnds`. Every path ends in `account`
 * exactly once.
 * @param socketCall set if the request arrived as a message of a WebSocket
 */
export function serve(services: Services, exchange: Exchange, socketCall: SocketCall | null = null): void {
  const call = new Call(exchange, services.running, openai, services.endThrown);
  call.socketCall = socketCall;
  try {
    begin(services, call);
  } catch (fault) {
    call.onFault('request', fault);
  }
}

const responseActions = {
  responseShow: 'show',
  responseDelete: 'delete',
  responseItems: 'items',
  responseCancel: 'cancel',
} as const;

function begin(services: Services, arrived: Call): void {
  const route = findRoute(arrived);
  if (route.auth === 'modelList') arrived.errorFormat = modelsErrorFormat(arrived.exchange.head);
  const call = authenticate(arrived, route);
  switch (route.operation) {
    case 'call':
      new Intake(services, call, proceed).start(true);
      return;
    case 'upload':
      new Upload(services, call, { form: declared(route.form), next: proceedUpload }).start();
      return;
    case 'image':
    case 'videoCreate':
    case 'videoAction':
      // Polling the status of a task does not count as a request.
      new Intake(services, call, proceedMedia).start(route.operation !== 'videoAction' || createsTask(call));
      return;
    case 'videoShow':
      showTask(services, call, declared(route.video).format, taskId(call));
      return;
    case 'videoContent':
      admitThen(services, call, () => serveContent(services, call, taskId(call)), 'concurrentOnly');
      return;
    case 'modelList':
    case 'model':
    case 'googleModelList':
    case 'googleModel':
      answerModels(call, route);
      account(services, call, 'complete');
      return;
    case 'responseShow':
    case 'responseDelete':
    case 'responseItems':
    case 'responseCancel': {
      const action = responseActions[route.operation];
      admitThen(services, call, (_, admitted) => answerById(services, admitted, action));
      return;
    }
    case 'realtime':
      admitThen(services, call, openSession);
      return;
    case 'responsesSocket':
      openResponsesSocket(services, call);
      return;
    case 'unimplemented':
      throw new GatewayError(
        'not_implemented',
        `${route.method} ${route.path} is not implemented by this gateway.`,
      );
  }
}

/**
 * @throws {GatewayError} `upgrade_required` if no WebSocket is served. Coding agents fall back to POST on this status alone
 */
function openResponsesSocket(services: Services, call: AuthenticatedCall): void {
  const { exchange, running } = call;
  if (!running.snapshot.sockets.responses)
    throw new GatewayError(
      'upgrade_required',
      'Responses over a WebSocket are not enabled: send POST requests.',
    );
  if (exchange.offer === null)
    throw new GatewayError(
      'upgrade_required',
      'GET on this path opens a WebSocket: for plain HTTP send POST requests.',
    );
  takeSlot(services, call, (_, admitted) => new ResponsesSocket(services, admitted, serve).begin());
}

/** @throws {GatewayError} if the framing of the request cannot be trusted, or no route serves it */
function findRoute(call: Call): Route {
  const { exchange, running } = call;
  const { method, path, head } = exchange;
  const match = running.router.find(method, path);
  if (match.kind === 'found') {
    call.params = match.params;
    call.errorFormat = match.value.errorFormat;
  } else {
    call.errorFormat = running.errorFormatForPath(method, path);
  }
  if (head.framingFault !== null) {
    exchange.closing = true;
    throw new GatewayError('invalid_request', head.framingFault);
  }
  if (match.kind === 'notFound') throw unknownUrl(method, path);
  if (match.kind === 'found') return match.value;
  const operation = unknownOperation(method, path) ?? methodNotAllowed(method, match.allow);
  if (operation instanceof GatewayError) throw operation;
  return operation;
}

const unknownKey = new GatewayError('invalid_api_key', 'The API key is not valid.');
const notKnownYet = new GatewayError(
  'store_unavailable',
  'The API key is not in the config, and the keys of the store are not known yet: try again shortly.',
  { retryAfter: 1 },
);
const expiredKey = new GatewayError('invalid_api_key', 'The API key has expired.');

/**
 * Finds the key of a call.
 * @returns the call
 * @throws {GatewayError} `invalid_api_key` if the key is missing, in the wrong place or not valid; `store_unavailable` if it
 * may be a managed key that this worker has not loaded yet; status 400 if the protocol's version header is missing, or a
 * header for the upstream cannot be written; `loop_detected` if the call has passed too many gateways
 */
function authenticate(call: Call, route: Route): AuthenticatedCall {
  call.route = route;
  const presented = presentedKey(route.auth, call.exchange.head);
  if (typeof presented !== 'string') throw presented;
  const key = call.running.keys.find(presented);
  if (key === null) throw call.running.keys.isComplete ? unknownKey : notKnownYet;
  if (key.expiresAt !== null && key.expiresAt <= Date.now()) throw expiredKey;
  call.key = key;
  call.authenticatedAt = performance.now();
  call.bodyAt = call.authenticatedAt;
  const { unwritable, vendorcVersion, gateways } = call.exchange.head;
  if (gateways >= mostGateways) throw new GatewayError('loop_detected', null, { unrepeatable: true });
  if (unwritable !== '') throw unwritableHeader(unwritable);
  const refusal = checkVendorcVersion(route.auth, vendorcVersion);
  if (refusal !== null) throw refusal;
  return call as AuthenticatedCall;
}

/** Continues a call when its whole body has arrived. */
function proceed(services: Services, call: AuthenticatedCall): void {
  const { stream } = call.route;
  const endpoint = declared(call.route.endpoint);
  const schema = declared(call.route.schema);
  if (endpoint.modelInBody) writePathModel(call);
  const validated =
    call.socketCall === null ? validatedBody(call, schema) : validatedMessage(services, call, schema);
  call.validated = stream === 'asked' ? validated : { ...validated, stream: stream === 'byQuery' };
  call.steering = call.socketCall?.steering ?? validated.members.steering;
  const resolved = resolveModel(call, endpoint.protocol);
  if (!endpoint.modelInBody) requirePathModel(call);
  if (validated.tools !== null || validated.itemTools) refuseClosedToolModels(resolved);
  if (validated.inBackground && endpoint.answersLater) {
    if (call.socketCall === null) requireOutputLimit(resolved);
    else refuseUncounted(resolved);
  }
  if (stream === 'byQuery' && queryParameter(call.exchange.head.query, 'alt') !== 'sse')
    call.framing = 'array';
  call.validatedAt = performance.now();
  const { conversation } = endpoint;
  if (conversation === null) admitToSend(services, resolved);
  else recall(services, resolved, { endpoint, conversation, schema, next: admitToSend });
}

function admitToSend(services: Services, call: ResolvedCall): void {
  const draw = call.model.drawing.length === 0 ? null : imagePhaseOf(call);
  admitResolved(services, call, draw ?? forward);
}

function validatedBody(call: Call, schema: CompiledSchema): ValidatedBody {
  return validateBody(call.wholeBody(), schema, call.running.snapshot.limits.bodyValues);
}

/**
 * Makes the body of a call of the message as which it arrived, and validates it.
 * @throws {GatewayError} for faults of JSON, with positions in the message
 */
function validatedMessage(services: Services, call: Call, schema: CompiledSchema): ValidatedBody {
  const message = call.jsonBody();
  const { bodyBytes } = call.running.snapshot.limits;
  const body = declared(call.socketCall).open(message);
  if (body.length > bodyBytes) throw bodyTooLarge(bodyBytes);
  setHeldBytes(services, call, body.length);
  call.body = body;
  try {
    return validatedBody(call, schema);
  } catch (fault) {
    if (!(fault instanceof GatewayError) || fault.kind !== 'invalid_json') throw fault;
    throw invalidJson(message);
  } finally {
    call.exchange.recycleBody();
  }
}

/**
 * Continues an upload when enough of its form has arrived to route it. The rest arrives while the call waits for its limits.
 */
function proceedUpload(services: Services, call: AuthenticatedCall): void {
  const resolved = resolveModel(call, declared(call.route.endpoint).protocol);
  call.validatedAt = performance.now();
  admitResolved(services, resolved, forward);
}

/** Continues a call for images or video, whose whole body has arrived and is not passed on unchanged. */
function proceedMedia(services: Services, call: AuthenticatedCall): void {
  const { operation, image, video, endpoint, schema } = call.route;
  if (image !== null)
    serveImages(services, call, { operation: image, endpoint: declared(endpoint), schema: declared(schema) });
  else if (operation === 'videoAction') serveAction(services, call);
  else serveCreate(services, call, declared(video));
}

/** Returns a part that the routing table sets for every route of the operation. */
function declared<Part extends object>(part: Part | null): Part {
  if (part === null) throw new Error('the route lacks what its operation needs');
  return part;
}

function taskId({ params }: Call): string {
  return params.task_id ?? '';
}
