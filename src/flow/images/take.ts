import { performance } from 'node:perf_hooks';
import { GatewayError } from '../../errors.js';
import { decodeImageBody } from '../../protocols/images/decode.js';
import { decodeImageForm } from '../../protocols/images/decode-form.js';
import type { ImageOperation, ImageRequest } from '../../protocols/images/request.js';
import { imageForm } from '../../protocols/images/schema.js';
import type { Endpoint } from '../../protocols/protocol.js';
import type { CompiledSchema } from '../../schema/compile.js';
import { parseObject } from '../../wire/json.js';
import { isMultipart } from '../../wire/multipart.js';
import { admitResolved } from '../admit.js';
import type { AuthenticatedCall, Call } from '../call.js';
import { forward } from '../forward.js';
import { findModel } from '../resolve.js';
import type { Services } from '../services.js';
import { readValidated, validateBody } from '../validate.js';
import { WholeForm } from '../whole-form.js';
import { convertImages, isExact } from './convert.js';

export interface ImageRoute {
  readonly operation: ImageOperation;
  readonly endpoint: Endpoint;
  readonly schema: CompiledSchema;
}

/**
 * Serves a call for images. A body that the targets take as it is passes untouched. A body of the other form, or an
 * answer that has to have a certain form, is converted.
 */
export function takeImages(services: Services, call: AuthenticatedCall, route: ImageRoute): void {
  const request = read(call, route);
  const resolved = findModel(call, 'images', request.model);
  const { model } = resolved;
  call.units = request.count ?? 1;
  call.validatedAt = performance.now();
  const plain = model.targets.filter((target) =>
    request.stream ? target.images !== 'dashscope' : isExact(target, request),
  );
  const isPlain = request.form === 'prompt' && (request.stream || request.responseFormat === null);
  const passes = isPlain && plain.length > 0 && (request.stream || plain.length === model.targets.length);
  admitResolved(services, resolved, () => {
    if (passes) forward(services, resolved, route.endpoint, plain);
    else convertImages(services, resolved, route.endpoint, request);
  });
}

function read(call: Call, { operation, schema }: ImageRoute): ImageRequest {
  const body = call.wholeBody();
  if (isMultipart(call.exchange.head.contentType)) {
    const form = new WholeForm(call, body, imageForm);
    const request = decodeImageForm(operation, form.parts);
    call.upload = form;
    call.validated = readValidated(request.model, request.stream);
    return request;
  }
  call.validated = validateBody(call.jsonBody(), schema);
  call.steering = call.validated.members.steering;
  const parsed = parseObject(body.toString('utf8'));
  if (parsed === null) throw new GatewayError('invalid_json', 'The request body is not valid JSON.');
  return decodeImageBody(operation, parsed);
}
