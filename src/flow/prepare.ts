import type { Target } from '../config/types.js';
import type { AnswerContext } from '../conversation/codec.js';
import { bodyEstimate, inputEstimate } from '../conversation/estimate-usage.js';
import type { ConversationRequest } from '../conversation/request.js';
import { signatureMark } from '../conversation/signature.js';
import { GatewayError } from '../errors.js';
import type { OnceRule } from '../protocols/once.js';
import type { Endpoint, Translation } from '../protocols/protocol.js';
import { type TextEndpoint, textEndpoints } from '../protocols/text.js';
import type { AnswerTransform } from '../stream/answer-transform.js';
import { ObservedTransform } from '../stream/observe.js';
import { ArrayTransform } from '../stream/reframe.js';
import { TranslatedTransform } from '../stream/translate.js';
import type { RequestBodySource } from '../upstream/client.js';
import { parseObject } from '../wire/json.js';
import { scanBody } from '../wire/json-scan.js';
import { sealMark } from '../wire/seal.js';
import { spliceBody } from '../wire/splice.js';
import type { Call, GatewayPath } from './call.js';
import { bareName } from './resolve.js';
import type { UploadBody } from './upload-body.js';
import type { HeadParts } from './upstream-head.js';

/** One attempt at a target, ready to be sent. */
export interface Prepared extends HeadParts {
  readonly path: GatewayPath;
  readonly body: readonly Buffer[];
  /** Where the rest of the body comes from, or null when it is whole. */
  readonly source: RequestBodySource | null;
  readonly transform: AnswerTransform;
  /** Of its body as it is sent. */
  readonly once: OnceRule;
}

const json = 'application/json';

/** Prepares a call for a target that takes it as it came, but for the few bytes that have to differ. */
export function prepareNative(call: Call, endpoint: Endpoint, target: Target): Prepared {
  const validated = call.checkedBody();
  const includeUsage =
    validated.stream && !validated.includeUsage && endpoint.usageOnRequest && target.upstream.injectUsage;
  const model = modelToWrite(endpoint, validated.model, target.model);
  const changed = restored(call, endpoint);
  const body = changed ?? call.wholeBody();
  const edited = model !== null || includeUsage;
  const observed = new ObservedTransform({
    rules: endpoint,
    hideUsage: includeUsage,
    mayStream: endpoint.mayStream,
    amend: endpoint.amender?.(body) ?? null,
    inputEstimate: endpoint.metering.estimates === 'none' ? 0 : bodyEstimate(body),
    secrets: target.upstream.secrets,
  });
  return {
    path: edited || changed !== null ? 'spliced' : 'exact',
    upstreamPath: nativePath(call, endpoint, target),
    wire: endpoint.protocol,
    contentType: json,
    source: null,
    once: endpoint.once,
    body: edited
      ? spliceBody(body, changed === null ? validated.scan : scanBody(body), { model, includeUsage })
      : [body],
    transform: call.framing === 'array' ? new ArrayTransform(observed) : observed,
  };
}

/** The name that has to take the place of the one in the body, or null. Where the path has it, the body's is the same. */
function modelToWrite({ modelInBody }: Endpoint, named: string, model: string): string | null {
  if (modelInBody) return named === model ? null : model;
  if (named === '' || bareName(named) === bareName(model)) return null;
  return named === bareName(named) ? model : `models/${bareName(model)}`;
}

/** Prepares a form for a target that takes it as it came, but for the model's name. */
export function prepareUpload(call: Call, upload: UploadBody, endpoint: Endpoint, target: Target): Prepared {
  const model = call.validated?.model === target.model ? null : target.model;
  return {
    path: model === null ? 'exact' : 'spliced',
    upstreamPath: endpoint.upstreamPath(target.model, false),
    wire: endpoint.protocol,
    contentType: upload.contentType,
    once: endpoint.once,
    ...upload.open(model),
    transform: new ObservedTransform({
      rules: endpoint,
      hideUsage: false,
      mayStream: endpoint.mayStream,
      amend: null,
      inputEstimate: 0,
      secrets: target.upstream.secrets,
    }),
  };
}

function nativePath(call: Call, endpoint: Endpoint, target: Target): string {
  const path = endpoint.upstreamPath(target.model, call.validated?.stream ?? false);
  return endpoint.upstreamQuery === null ? path : path + endpoint.upstreamQuery(call.exchange.head.query);
}

/**
 * What the gateway gave a client to carry while another upstream served it means nothing to one that takes the body
 * as it comes. A config without translations has never given anything.
 * @returns the body without it, or null when there is nothing of the kind in it
 */
function restored(call: Call, { translation }: Endpoint): Buffer | null {
  const body = call.wholeBody();
  if (!call.running.snapshot.translates || translation === null || translation.restore === null) return null;
  if (!body.includes(signatureMark) && !body.includes(sealMark)) return null;
  const parsed = parseObject(body.toString('utf8'));
  const changed = parsed === null ? null : translation.restore(parsed, call.running.sealer);
  return changed === null ? null : Buffer.from(JSON.stringify(changed));
}

/**
 * Reads the whole body of a call that is translated.
 * @throws {GatewayError} of status 400 for what the neutral form cannot hold
 */
export function decodeCall(call: Call, { codec, unwrap }: Translation): ConversationRequest {
  const parsed = parseObject(call.wholeBody().toString('utf8'));
  if (parsed === null) throw new GatewayError('invalid_json', 'The request body is not valid JSON.');
  const { sealer } = call.running;
  return codec.decodeRequest(
    unwrap === null ? parsed : unwrap(parsed),
    call.validated?.stream ?? false,
    sealer,
  );
}

/** How a target that speaks another protocol is asked. */
export function translatedEndpoint({ wire, model }: Target): TextEndpoint {
  if (wire === null) throw new Error(`the target ${model} speaks no text protocol`);
  return textEndpoints[wire];
}

/**
 * Prepares a call for a target that speaks another protocol.
 * @throws {GatewayError} of status 400 for what the target's protocol cannot say
 */
export function prepareTranslated(
  call: Call,
  translation: Translation,
  target: Target,
  request: ConversationRequest,
): Prepared {
  const upstream = translatedEndpoint(target);
  const theirs = upstream.translation.codec;
  const ours = translation.codec;
  const body = theirs.encodeRequest(request, target.translation);
  const context = answerContext(call, request);
  return {
    path: 'translated',
    upstreamPath: upstream.upstreamPath(target.model, request.stream),
    wire: upstream.protocol,
    contentType: json,
    body: [Buffer.from(body)],
    source: null,
    once: upstream.once,
    transform: new TranslatedTransform({
      theirs,
      source: { model: target.model },
      ours,
      context,
      inputEstimate: inputEstimate(request, body.length),
      secrets: target.upstream.secrets,
    }),
  };
}

function answerContext(call: Call, request: ConversationRequest): AnswerContext {
  return {
    id: call.exchange.id.slice('req_'.length),
    created: Math.floor(Date.now() / 1000),
    model: call.model?.name ?? '',
    includeUsage: request.includeUsage,
    showReasoning: request.reasoning?.show ?? false,
    echo: request.echo,
    compaction: request.compaction,
    sealer: call.running.sealer,
    framing: call.framing,
  };
}
