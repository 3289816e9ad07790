import type { Key, Model } from '../config/types.js';
import { openai } from '../dialects/openai.js';
import { queryParameter } from '../dialects/query.js';
import { GatewayError } from '../errors.js';
import type { Exchange } from '../http/exchange.js';
import type { Endpoint } from '../protocols/protocol.js';
import { methodNotAllowed, type Route, unknownUrl, type VideoRoute } from '../routes.js';
import type { FormSchema } from '../schema/form.js';
import { account } from './account.js';
import { authenticate } from './authenticate.js';
import { Call } from './call.js';
import { forward, type Sending } from './forward.js';
import { takeImages } from './images/take.js';
import { Intake } from './intake.js';
import { limit } from './limit.js';
import { answerModels, modelsDialect } from './models.js';
import { openSession } from './realtime/open.js';
import { refuse } from './refuse.js';
import { resolveModel } from './resolve.js';
import type { Services } from './services.js';
import { TurnSocket } from './turns/socket.js';
import type { TurnCall } from './turns/turn-call.js';
import { Upload } from './upload.js';
import { validateBody } from './validate.js';
import { serveContent } from './video/content.js';
import { showTask } from './video/show.js';
import { takeAction, takeCreate } from './video/take.js';

/**
 * The life of a request, in order: route, authenticate, take in the body (which `admit` makes room for), validate,
 * resolve the model, take what it needs of its limits, forward, relay, account. A refusal at any step goes to `refuse`, and every path ends in
 * `account` exactly once.
 * @param turn of a request that came as a message of a WebSocket
 */
export function serve(services: Services, exchange: Exchange, turn: TurnCall | null = null): void {
  const call = new Call(exchange, services.running, openai);
  call.turn = turn;
  try {
    begin(services, call);
  } catch (fault) {
    refuse(services, call, fault);
  }
}

function begin(services: Services, call: Call): void {
  const route = findRoute(call);
  call.route = route;
  call.dialect = modelsDialect(route, call.exchange.head) ?? route.dialect;
  authenticate(call, route);
  switch (route.operation) {
    case 'call':
      new Intake(services, call, proceed).start();
      return;
    case 'upload':
      new Upload(services, call, { form: route.form as FormSchema, next: proceedUpload }).start();
      return;
    case 'image':
    case 'videoCreate':
    case 'videoAction':
      new Intake(services, call, proceedMedia).start();
      return;
    case 'videoShow':
      showTask(services, call, (route.video as VideoRoute).format, taskId(call));
      return;
    case 'videoContent':
      serveContent(services, call, taskId(call));
      return;
    case 'modelList':
    case 'model':
    case 'googleModelList':
    case 'googleModel':
      answerModels(call, route);
      account(services, call, 'complete');
      return;
    case 'realtime':
      openSession(services, call);
      return;
    case 'responsesSocket':
      takeTurns(services, call);
      return;
    case 'unimplemented':
      throw new GatewayError(
        'not_implemented',
        `${route.method} ${route.path} is not implemented by this gateway.`,
      );
  }
}

/** @throws {GatewayError} `upgrade_required` where no WebSocket is served: coding agents fall back to POST on it alone */
function takeTurns(services: Services, call: Call): void {
  const { exchange, running } = call;
  if (!running.snapshot.sockets.responses)
    throw new GatewayError(
      'upgrade_required',
      'Responses are not served over a WebSocket here; send POST requests.',
    );
  if (exchange.offer === null)
    throw new GatewayError(
      'upgrade_required',
      'This path is a WebSocket for GET; send POST requests without one.',
    );
  services.sessions.reserve((call.key as Key).id, running.snapshot.sockets.perKey);
  new TurnSocket(services, call, serve).begin();
}

/** @throws {GatewayError} for a request whose framing cannot be trusted, and for what no route serves. */
function findRoute(call: Call): Route {
  const { exchange, running } = call;
  const { method, path, head } = exchange;
  const match = running.router.find(method, path);
  if (match.kind === 'found') {
    call.params = match.params;
    call.dialect = match.value.dialect;
  } else {
    call.dialect = running.dialectForPath(path);
  }
  if (head.framingFault !== null) {
    exchange.closing = true;
    throw new GatewayError('invalid_request', head.framingFault);
  }
  if (match.kind === 'notFound') throw unknownUrl(method, path);
  if (match.kind === 'methodNotAllowed') throw methodNotAllowed(method, match.allow);
  return match.value;
}

/** The second half, with the whole body at hand. */
function proceed(services: Services, call: Call): void {
  const { schema, endpoint, stream } = call.route as Route;
  if (call.body === null || call.key === null || schema === null || endpoint === null) {
    throw new Error('a route with a body has a schema and an endpoint');
  }
  const validated = validateBody(call.body, schema);
  call.validated = stream === 'asked' ? validated : { ...validated, stream: stream === 'always' };
  call.model = resolveModel(call, endpoint.protocol);
  if (stream === 'always' && queryParameter(call.exchange.head.query, 'alt') !== 'sse')
    call.framing = 'array';
  call.validatedAt = performance.now();
  limit(services, call, send);
}

function send(services: Services, call: Call): Sending {
  return forward(services, call, (call.route as Route).endpoint as Endpoint, (call.model as Model).targets);
}

/** With as much of a form as tells where it goes. */
function proceedUpload(services: Services, call: Call): Sending {
  const endpoint = (call.route as Route).endpoint as Endpoint;
  call.model = resolveModel(call, endpoint.protocol);
  call.validatedAt = performance.now();
  const sending = new UploadSending(services, call);
  limit(services, call, sending.begin);
  return sending;
}

/** An upload goes on arriving while its limits let it wait. */
class UploadSending implements Sending {
  readonly #services: Services;
  readonly #call: Call;
  #sending: Sending | null = null;

  constructor(services: Services, call: Call) {
    this.#services = services;
    this.#call = call;
  }

  readonly begin = (services: Services, call: Call): void => {
    this.#sending = send(services, call);
  };

  abandon(fault: unknown): void {
    if (this.#sending === null) refuse(this.#services, this.#call, fault);
    else this.#sending.abandon(fault);
  }
}

/** With the whole body of a call that is not passed on as it is. */
function proceedMedia(services: Services, call: Call): void {
  const { operation, image, video, endpoint, schema } = call.route as Route;
  if (image !== null && endpoint !== null && schema !== null)
    takeImages(services, call, { operation: image, endpoint, schema });
  else if (operation === 'videoAction') takeAction(services, call);
  else takeCreate(services, call, video as VideoRoute);
}

function taskId({ params }: Call): string {
  return params.task_id ?? '';
}
