import { performance } from 'node:perf_hooks';
import type { Target } from '../../config/types.js';
import type { Endpoint } from '../../protocols/endpoint.js';
import { writeAnswer } from '../../protocols/images/answer.js';
import { decodeImageBody } from '../../protocols/images/decode.js';
import { decodeImageForm } from '../../protocols/images/decode-form.js';
import {
  dashscopePath,
  isDashscopeBody,
  unsupportedByDashscope,
} from '../../protocols/images/encode-dashscope.js';
import { unsupportedByOpenai } from '../../protocols/images/encode-openai.js';
import { type ImageOutline, outlineOfBody, outlineOfForm, passesTo } from '../../protocols/images/outline.js';
import type { ImageOperation, ImageRequest } from '../../protocols/images/request.js';
import { imageForm } from '../../protocols/images/schema.js';
import { type CompiledSchema, readValidated, validateBody } from '../../schema/accept.js';
import { objectOf } from '../../wire/json.js';
import { scanBody } from '../../wire/json-scan.js';
import { isMultipart } from '../../wire/multipart-type.js';
import { parseBody } from '../../wire/skeleton.js';
import { spliceBody } from '../../wire/splice.js';
import { WholeForm } from '../body/whole-form.js';
import type { AuthenticatedCall, Call } from '../call.js';
import { admitResolved } from '../limits/admit.js';
import { resolveModel, writePathModel } from '../resolve.js';
import type { Services } from '../services.js';
import { forward } from '../upstream/forward.js';
import type { Prepared } from '../upstream/prepare.js';
import { convertImages, dropsFormat, memoized, type RequestedImages, withoutRefused } from './convert.js';
import { writeSvgAuthor } from './svg-author.js';

interface OutlinedImages extends RequestedImages {
  readonly outline: ImageOutline;
}

interface ImageRoute {
  readonly operation: ImageOperation;
  readonly endpoint: Endpoint;
  readonly schema: CompiledSchema;
}

/**
 * Serves a call for images. A body that the targets take unchanged passes through, and they judge its content. A body of
 * the other form, or an answer that must have a certain form, is converted.
 */
export function serveImages(services: Services, call: AuthenticatedCall, route: ImageRoute): void {
  const sent = read(call, route);
  const resolved = resolveModel(call, route.endpoint.protocol);
  const requested = writeSvgAuthor(resolved) ? read(call, route) : sent;
  const { form, count, stream, responseFormat, size, quality } = requested.outline;
  const { targets } = resolved.model;
  call.units = count ?? 1;
  call.made = { size, quality, resolution: null };
  const plain = targets.filter(({ images }) =>
    stream ? images !== 'dashscope' : passesTo(images, requested.outline),
  );
  const [first] = targets;
  // If no target takes the body unchanged, an invalid one is refused before anything of the key's limits is taken.
  if (plain.length === 0 && first !== undefined) requested.request(first.images);
  call.validatedAt = performance.now();
  const isPlain = form === 'prompt' && (stream || responseFormat === null);
  const passes = isPlain && plain.length > 0 && (stream || plain.length === targets.length);
  const adapt = (prepared: Prepared, target: Target): Prepared =>
    withoutRefused(prepared, resolved, requested.outline, target);
  admitResolved(services, resolved, () => {
    if (passes) forward(services, resolved, plain, responseFormat === null ? null : adapt);
    else convertImages(services, resolved, targets, requested);
  });
}

function read(call: Call, { operation, endpoint, schema }: ImageRoute): OutlinedImages {
  if (isMultipart(call.exchange.head.contentType)) {
    const form = new WholeForm(call, call.wholeBody(), imageForm);
    const outline = outlineOfForm(operation, form.parts);
    call.upload = form;
    call.validated = readValidated(outline.model, outline.stream);
    const requested = requestedOf(
      endpoint,
      outline,
      () => decodeImageForm(operation, form.parts),
      () => null,
    );
    // A form is written again to take a field out.
    const passes = (target: Target): boolean => requested.passes(target) && !dropsFormat(outline, target);
    return { ...requested, passes };
  }
  writePathModel(call);
  const body = call.wholeBody();
  call.validated = validateBody(call.jsonBody(), schema, call.running.snapshot.limits.bodyValues);
  call.steering = call.validated.members.steering;
  const skeleton = parseBody(body, scanBody(body));
  const outline = outlineOfBody(operation, objectOf(skeleton), () => call.parsedBody());
  const isOwn = isDashscopeBody(objectOf(skeleton));
  return requestedOf(
    endpoint,
    outline,
    () => decodeImageBody(operation, call.parsedBody()),
    ({ images, model }) => {
      if (!isOwn || images !== 'dashscope') return null;
      const sent = call.wholeBody();
      const edits = { model: model === outline.model ? null : model, includeUsage: false };
      return { path: dashscopePath, body: spliceBody(sent, scanBody(sent), edits) };
    },
  );
}

function requestedOf(
  endpoint: Endpoint,
  outline: ImageOutline,
  make: () => ImageRequest,
  ownBody: RequestedImages['ownBody'],
): OutlinedImages {
  const request = memoized(make);
  return {
    endpoint,
    outline,
    passes: ({ images }) => passesTo(images, outline),
    request,
    ownBody,
    leftOut: ({ images, model }) => [
      ...request().unread,
      ...(images === 'dashscope' ? unsupportedByDashscope(request()) : unsupportedByOpenai(request(), model)),
    ],
    write: (answer) => writeAnswer(answer, outline.responseFormat, Date.now()),
  };
}
