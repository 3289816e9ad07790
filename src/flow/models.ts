import {
  type CredentialSource,
  type ModelListFormat,
  modelListFormat,
} from '../protocols/credentials/credentials.js';
import type { ErrorFormat } from '../protocols/error-formats/error-format.js';
import { modelList, modelListErrorFormat, modelObject } from '../protocols/models/list.js';
import type { Route } from '../routes.js';
import { ownLines, timingLine } from './answer/lines.js';
import type { AuthenticatedCall } from './call.js';

/** The error format of a model listing whose format the request's headers choose. */
export function modelsErrorFormat(source: CredentialSource): ErrorFormat {
  return modelListErrorFormat(modelListFormat(source));
}

/**
 * Answers a model listing, or one model of it, from what the call's key opens.
 * @throws {GatewayError} for an unknown model or a bad page.
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
  return auth === 'modelList' ? modelListFormat(source) : 'generateContent';
}
