import { parseObject } from '../../conversation/json.js';
import { GatewayError } from '../../errors.js';
import { decodeImageBody } from '../../protocols/images/decode.js';
import { decodeImageForm } from '../../protocols/images/decode-form.js';
import type { ImageOperation, ImageRequest } from '../../protocols/images/request.js';
import type { Endpoint } from '../../protocols/protocol.js';
import type { CompiledSchema } from '../../schema/compile.js';
import { isMultipart } from '../../wire/multipart.js';
import type { Call } from '../call.js';
import { forward } from '../forward.js';
import { limit } from '../limit.js';
import { findModel } from '../resolve.js';
import type { Services } from '../services.js';
import { readValidated, validateBody } from '../validate.js';
import { WholeForm } from '../whole-form.js';
import { convertImages } from './convert.js';

export interface ImageRoute {
  readonly operation: ImageOperation;
  readonly endpoint: Endpoint;
  readonly schema: CompiledSchema;
}

/**
 * Serves a call for images. A body that the targets take as it is passes untouched; for everything else, a body of the
 * other form or an answer that has to have a certain form, requests and answers are converted.
 */
export function takeImages(services: Services, call: Call, route: ImageRoute): void {
  const request = read(call, route);
  const model = findModel(call, 'images', request.model);
  call.model = model;
  call.units = request.count ?? 1;
  call.validatedAt = performance.now();
  const plain = model.targets.filter((target) => target.images === 'openai');
  const isPlain = request.form === 'prompt' && (request.stream || request.responseFormat === null);
  const passes = isPlain && plain.length > 0 && (request.stream || plain.length === model.targets.length);
  limit(services, call, () => {
    if (passes) forward(services, call, route.endpoint, plain);
    else convertImages(services, call, route.endpoint, request);
  });
}

function read(call: Call, { operation, schema }: ImageRoute): ImageRequest {
  const body = call.body as Buffer;
  if (isMultipart(call.exchange.head.contentType)) {
    const form = new WholeForm(call, body);
    const request = decodeImageForm(operation, form.parts);
    call.upload = form;
    call.validated = readValidated(request.model, request.stream);
    return request;
  }
  call.validated = validateBody(body, schema);
  const parsed = parseObject(body.toString('utf8'));
  if (parsed === null) throw new GatewayError('invalid_json', 'The request body is not valid JSON.');
  return decodeImageBody(operation, parsed);
}
