import {
  type AuthStyle,
  type CredentialSource,
  type ModelListFormat,
  modelListFormat,
} from '../protocols/credentials/credentials.js';
import type { ErrorFormat } from '../protocols/error-formats/formats.js';
import { modelList, modelListErrorFormat, modelObject } from '../protocols/models/list.js';
import type { Route } from '../routes.js';
import { ownLines, timingLine } from './answer/lines.js';
import type { AuthenticatedCall } from './call.js';

/** Returns the error format of a model list whose format depends on the request's headers. */
export function modelsErrorFormat(source: CredentialSource): ErrorFormat {
  return modelListErrorFormat(modelListFormat(source));
}

/**
 * Answers a request for the list of models, or for one model, with what the call's key may use.
 * @throws {GatewayError} if the model is unknown or the page is invalid
 */
export function answerModels(call: AuthenticatedCall, route: Route): void {
  const { exchange, key } = call;
  const format = formatOf(route, exchange.head);
  const { models } = key;
  const { model: id } = call.params;
  const body =
    id === undefined ? modelList(format, models, exchange.head.query) : modelObject(format, models, id);
  exchange.respond(200, ownLines(call) + timingLine(call), body);
}

function formatOf({ auth }: Route, source: CredentialSource): ModelListFormat {
  return auth === 'modelList' ? modelListFormat(source) : formatOfStyle[auth];
}

/** Formats of the lists whose path belongs to one protocol. */
const formatOfStyle: Readonly<Record<Exclude<AuthStyle, 'modelList'>, ModelListFormat>> = {
  bearer: 'chat',
  messages: 'messages',
  generateContent: 'generateContent',
  realtime: 'chat',
};
