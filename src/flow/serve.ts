import { openai } from '../dialects/openai.js';
import { GatewayError } from '../errors.js';
import type { Exchange } from '../http/exchange.js';
import { chat } from '../protocols/chat/index.js';
import { methodNotAllowed, type Route, unknownUrl } from '../routes.js';
import { account } from './account.js';
import { authenticate } from './authenticate.js';
import { Call } from './call.js';
import { forward } from './forward.js';
import { Intake } from './intake.js';
import { answerModels, modelsDialect } from './models.js';
import { refuse } from './refuse.js';
import { resolveModel } from './resolve.js';
import type { Services } from './services.js';
import { validateBody } from './validate.js';

/**
 * The life of a request, in order: route, authenticate, take in the body (which `admit` makes room for), validate,
 * resolve the model, forward, relay, account. A refusal at any step goes to `refuse`, and every path ends in
 * `account` exactly once.
 */
export function serve(services: Services, exchange: Exchange): void {
  const call = new Call(exchange, services.running, openai);
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
    case 'chat':
      new Intake(services, call, proceed).start();
      return;
    case 'modelList':
    case 'model':
    case 'googleModelList':
    case 'googleModel':
      answerModels(call, route);
      account(services, call, 'complete');
      return;
    case 'responsesSocket':
      throw new GatewayError(
        'upgrade_required',
        'Responses are not served over a WebSocket here; send POST requests.',
      );
    case 'unimplemented':
      throw new GatewayError(
        'not_implemented',
        `${route.method} ${route.path} is not implemented by this gateway.`,
      );
  }
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
  const { schema, protocol } = call.route as Route;
  if (call.body === null || call.key === null || schema === null || protocol === null) {
    throw new Error('a route with a body has a schema and a protocol');
  }
  const validated = validateBody(call.body, schema);
  call.validated = validated;
  call.model = resolveModel(call.key, validated.model, protocol);
  call.validatedAt = performance.now();
  forward(services, call, chat, call.model.targets);
}
