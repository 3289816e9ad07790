import type { RelayedAttempt } from '../../attempts/relayed-attempt.js';
import type { Protocol, Target, TargetRules } from '../../config/types.js';
import type { AnswerContext } from '../../conversation/codec.js';
import { mapEffort } from '../../conversation/effort.js';
import { bodyEstimate, inputEstimate, mediumTokens } from '../../conversation/estimate-usage.js';
import { fitRequest } from '../../conversation/fit/fit.js';
import type { Keep } from '../../conversation/kept-turns.js';
import { LeftOut, type LeftOutNames, nothingLeftOut, withoutLeftOut } from '../../conversation/left-out.js';
import type { ConversationRequest, TextProtocolName } from '../../conversation/request.js';
import { namesRemovedByRules } from '../../conversation/setting-names.js';
import { type ModelTokens, unknownTokens } from '../../conversation/usage.js';
import { type EffectRule, noEffects } from '../../protocols/effects.js';
import type { Endpoint, OtherForm, TextEndpoint, Translation } from '../../protocols/endpoint.js';
import { bareName, resourceName } from '../../protocols/model-path.js';
import { bodyEdits, type RuledBody } from '../../protocols/target-rules/body-edits.js';
import { textEndpoints } from '../../protocols/text.js';
import type { AnswerTransform } from '../../stream/answer-transform.js';
import { ArrayTransform } from '../../stream/array.js';
import { ObservedTransform } from '../../stream/observe.js';
import { TranslatedTransform } from '../../stream/translate.js';
import type { Deadlines, RequestBodySource, UpstreamExchange } from '../../upstream/types.js';
import { isOfTokensOnly } from '../../usage/cost.js';
import { parseObject } from '../../wire/json.js';
import { scanBody } from '../../wire/json-scan.js';
import { contains } from '../../wire/json-skip.js';
import { editMembers, type ObjectEdits, type OnLost } from '../../wire/member-edits.js';
import { createSealer, type Sealer } from '../../wire/seal.js';
import { type BodyEdits, spliceBody } from '../../wire/splice.js';
import { beginInBackground } from '../background/settle.js';
import { answerId, type Call, type GatewayPath, type UploadBody } from '../call.js';
import {
  answerKeep,
  keepsTurns,
  type NativeAttempt,
  nothingKept,
  turnKeeping,
} from '../conversation/keep.js';
import type { Services } from '../services.js';
import { type HeadParts, upstreamHead } from './head.js';

/** One attempt at a target, ready to be sent. */
export interface Prepared extends HeadParts {
  readonly gatewayPath: GatewayPath;
  /** Members of the client's body that were left out of it. */
  readonly leftOut: LeftOutNames;
  readonly body: readonly Buffer[];
  /** Source of the rest of the body, or null if it is complete. */
  readonly source: RequestBodySource | null;
  readonly transform: AnswerTransform;
  /** Effects of its body as it is sent. */
  readonly hasEffects: EffectRule;
}

/** Returns the length of its body as it is sent. */
export function writtenBytes({ body }: Prepared): number {
  let bytes = 0;
  for (const piece of body) bytes += piece.length;
  return bytes;
}

/** Sends a prepared attempt as a request of its own. @throws {GatewayError} for a head that cannot be written */
export function postAttempt(
  services: Services,
  call: Call,
  attempt: RelayedAttempt,
  prepared: Prepared,
  deadlines: Deadlines,
): UpstreamExchange {
  const { target, keyIndex } = attempt;
  const { body, source, hasEffects } = prepared;
  const head = upstreamHead(call, target, keyIndex, prepared);
  const request = { method: 'POST', head, body, source, hasEffects };
  return services.upstream.send(target.upstream.origin, request, deadlines, attempt);
}

const json = 'application/json';

/** Whether a target has the operation of an endpoint in another form, so that its body is written again. */
export function hasOtherForm(endpoint: Endpoint, target: Target): boolean {
  return otherForm(endpoint, target) !== null;
}

function otherForm({ otherForms }: Endpoint, { upstream }: Target): OtherForm | null {
  return otherForms.find(({ kinds }) => kinds.has(upstream.kind)) ?? null;
}

/** Prepares a call for a target that takes it unchanged, except for the few bytes that have to differ. */
export function prepareNative(services: Services, call: Call, attempt: NativeAttempt): Prepared {
  const { endpoint, target, apiKey } = attempt;
  const form = otherForm(endpoint, target);
  if (form !== null) return prepareOtherForm(call, { endpoint, form, target });
  const validated = call.checkedBody();
  const includeUsage =
    validated.stream && !validated.includeUsage && endpoint.usageOnRequest && target.upstream.injectUsage;
  const model = modelToWrite(endpoint, validated.model, target.model);
  const changed = changedInside(call, endpoint, target);
  const body = changed ?? call.wholeBody();
  const edited = model !== null || includeUsage;
  const scan = changed === null || !edited ? validated.scan : scanBody(body);
  const targetRules = targetRulesFor(endpoint, target, body);
  let sent: readonly Buffer[];
  let leftOut = nothingLeftOut;
  if (targetRules !== null) {
    const lost = new LeftOut();
    sent = ruledBody(targetRules, body, nativeKind(endpoint, { model, includeUsage }), (path) =>
      lost.add(path),
    );
    leftOut = lost.names;
  } else sent = edited ? spliceBody(body, scan, { model, includeUsage }) : [body];
  const { conversation } = endpoint;
  const kept = conversation === null ? nothingKept : turnKeeping(services, call, attempt, conversation);
  const isInBackground = validated.inBackground && endpoint.answersLater && call.socketCall === null;
  const Transform = call.framing === 'array' ? ArrayTransform : ObservedTransform;
  const transform = new Transform({
    rules: endpoint,
    hideUsage: includeUsage,
    streamsUnasked: endpoint.streamsUnasked,
    amend: endpoint.amender?.(changed ?? call.jsonBody()) ?? null,
    keep: kept.keep,
    watch: isInBackground ? beginInBackground(call, apiKey, kept.watch) : kept.watch,
    watchEnd: kept.watchEnd,
    watchAll: kept.watchAll,
    inputEstimate: bodyEstimate(body) + call.repeatedTokens,
    tokens: tokensOf(call),
    estimated: estimatedAnswers(call, endpoint),
    requested: call.units,
    alternatives: mayGiveUp(call, target) && !endpoint.hasEffects(sent) ? call.forwarding : null,
    secrets: target.upstream.secrets,
  });
  return {
    gatewayPath: sent.length === 1 && sent[0] === call.body ? 'exact' : 'spliced',
    leftOut,
    upstreamPath: nativePath(call, endpoint, target),
    protocol: endpoint.protocol,
    contentType: json,
    source: null,
    hasEffects: endpoint.hasEffects,
    body: sent,
    transform,
  };
}

/** Whether a stream that has only opened an answer may be given up, if there is another target. */
function mayGiveUp({ validated, model }: Call, { firstTokenMs }: Target): boolean {
  if (model === null || validated?.stream !== true) return false;
  return firstTokenMs !== null || model.hedgeMs !== null;
}

interface OtherFormAttempt {
  readonly endpoint: Endpoint;
  readonly form: OtherForm;
  readonly target: Target;
}

/**
 * Prepares a call for a target that has the operation in another form.
 * @throws {GatewayError} with status 400 for what that form cannot express
 */
function prepareOtherForm(call: Call, { endpoint, form, target }: OtherFormAttempt): Prepared {
  const { protocol } = endpoint;
  const leftOut = new LeftOut();
  const names = { upstream: target.model, client: call.model?.name ?? '' };
  const { body, answer } = form.convert(call.parsedBody(), names, leftOut);
  const written = Buffer.from(body);
  return {
    gatewayPath: 'translated',
    leftOut: leftOut.names,
    upstreamPath: form.upstreamPath(target.model),
    protocol,
    contentType: json,
    source: null,
    hasEffects: noEffects,
    body: target.rules === null ? [written] : ruledBody(target.rules, written, writtenKind(protocol)),
    transform: new ObservedTransform({
      rules: form.rules,
      hideUsage: false,
      streamsUnasked: false,
      exactErrors: false,
      amend: answer,
      keep: null,
      inputEstimate: bodyEstimate(written),
      tokens: tokensOf(call),
      secrets: target.upstream.secrets,
    }),
  };
}

/**
 * Returns the changed body for a target of the same protocol if more than its top-level members differ; null if nothing
 * does.
 */
function changedInside(call: Call, endpoint: Endpoint, target: Target): Buffer | null {
  const changed = restored(call, endpoint, target) ?? renamedInside(call, endpoint, target);
  const withoutTurns = endpoint.conversation?.withoutTurns;
  if (withoutTurns === undefined || !call.checkedBody().goesOn || keepsTurns(target, endpoint))
    return changed;
  return withoutTurns(changed ?? call.wholeBody()) ?? changed;
}

/** Returns the body for the current target of a call, except for its model's name. Empty if the body is not in memory. */
export function nativeBody({ body, target }: Call, endpoint: Endpoint): readonly Buffer[] {
  if (body === null) return [];
  const targetRules = target === null ? null : targetRulesFor(endpoint, target, body);
  if (targetRules === null) return [body];
  return ruledBody(targetRules, body, nativeKind(endpoint, { model: null, includeUsage: false }));
}

/** Returns the rules for a body that a target takes without translation. */
function targetRulesFor({ translation }: Endpoint, target: Target, body: Buffer): TargetRules | null {
  const { rules, rulesForOff } = target;
  if (rulesForOff === null || translation === null) return rules;
  return translation.thinkingOff.some((mark) => contains(body, mark)) ? rulesForOff : rules;
}

function nativeKind({ protocol, translation }: Endpoint, edits: BodyEdits): RuledBody {
  return { protocol, isTranslated: false, isCount: translation?.answerHere != null, ...edits };
}

/**
 * Returns the name that replaces the model's in the body, or null. If the path names the model, the body's name is the same.
 */
function modelToWrite({ modelInBody }: Endpoint, named: string, model: string): string | null {
  if (modelInBody) return named === model ? null : model;
  if (named === '' || bareName(named) === bareName(model)) return null;
  return named === bareName(named) ? model : resourceName(model);
}

/**
 * Returns a body whose inner objects name the model as well, with the target's name in their places.
 * @returns null if there is nothing to change
 */
function renamedInside(call: Call, { modelInBody }: Endpoint, { model }: Target): Buffer | null {
  const { noted } = call.checkedBody().members;
  if (modelInBody || noted.length === 0 || bareName(call.params.model ?? '') === bareName(model)) return null;
  const body = call.wholeBody();
  const name = Buffer.from(JSON.stringify(resourceName(model)));
  const pieces: Buffer[] = [];
  let from = 0;
  for (const { start, end } of noted) {
    pieces.push(body.subarray(from, start), name);
    from = end;
  }
  return Buffer.concat([...pieces, body.subarray(from)]);
}

/** Returns which answers without a usage are estimated in tokens: those that no other price of the model covers. */
function estimatedAnswers({ model, mediaSeconds }: Call, { metering }: Endpoint): 'none' | 'broken' | 'all' {
  if (metering.unreported === null) return 'none';
  const price = model === null ? null : model.price;
  if (isOfTokensOnly(price)) return 'all';
  return mediaSeconds > 0 || (price !== null && price.rates.characters > 0) ? 'none' : 'broken';
}

function tokensOf({ model }: Call): ModelTokens {
  return model === null ? unknownTokens : model.tokens;
}

/** Prepares a form for a target that takes it unchanged, except for the model's name. */
export function prepareUpload(call: Call, upload: UploadBody, endpoint: Endpoint, target: Target): Prepared {
  const model = call.validated?.model === target.model ? null : target.model;
  return {
    gatewayPath: model === null ? 'exact' : 'spliced',
    leftOut: nothingLeftOut,
    upstreamPath: endpoint.upstreamPath(target.model, false),
    protocol: endpoint.protocol,
    contentType: upload.contentType,
    hasEffects: endpoint.hasEffects,
    ...upload.open(model),
    transform: new ObservedTransform({
      rules: endpoint,
      hideUsage: false,
      streamsUnasked: endpoint.streamsUnasked,
      amend: null,
      keep: null,
      // The form holds a recording, or images.
      inputEstimate: mediumTokens,
      tokens: tokensOf(call),
      estimated: estimatedAnswers(call, endpoint),
      requested: call.units,
      secrets: target.upstream.secrets,
    }),
  };
}

function nativePath(call: Call, endpoint: Endpoint, target: Target): string {
  const path = endpoint.upstreamPath(target.model, call.validated?.stream ?? false);
  return endpoint.upstreamQuery === null ? path : path + endpoint.upstreamQuery(call.exchange.head.query);
}

/**
 * Removes from a body what the gateway gave a client to carry for an upstream of another protocol. It means nothing to an
 * upstream that takes the body without translation. A config without translations has never given any.
 * @returns the body without it, or null if there is none in it
 */
function restored(call: Call, { translation }: Endpoint, target: Target): Buffer | null {
  const body = call.wholeBody();
  if (!call.running.snapshot.translates || translation === null || !mayNeedRestoring(translation, body))
    return null;
  const parsed = parseObject(call.jsonBody().toString('utf8'));
  const changed = parsed === null ? null : translation.restore(parsed, sealerOf(call), target.translation);
  return changed === null ? null : Buffer.from(JSON.stringify(changed));
}

/** Whether a body may hold parts that an upstream of its own protocol must not get, judged by its bytes. */
export function mayNeedRestoring({ carriedMarks, mayLackSignature }: Translation, body: Buffer): boolean {
  return carriedMarks.some((mark) => contains(body, mark)) || mayLackSignature?.(body) === true;
}

/**
 * Decodes the whole body of a call that is translated.
 * @throws {GatewayError} with status 400 for a body that does not match its protocol, and for what the neutral form cannot
 * hold
 */
export function decodeCall(call: Call, { codec, schema, unwrap }: Translation): ConversationRequest {
  const parsed = call.parsedBody();
  if (!schema.check(parsed)) throw schema.explain(parsed);
  return codec.decodeRequest(
    unwrap === null ? parsed : unwrap(parsed),
    call.validated?.stream ?? false,
    sealerOf(call),
  );
}

/**
 * Returns the sealer of what the client of a call carries. It is bound to the call's key: another key cannot have it opened.
 */
function sealerOf({ running, key }: Pick<Call, 'running' | 'key'>): Sealer {
  return createSealer(running.snapshot.secret, key?.id);
}

/**
 * Returns the endpoint for a target that does not take a call without translation.
 * @param protocol of the call: a target with the same protocol lacks only one endpoint of it
 */
export function translatedEndpoint(
  { translatesTo, model, native }: Target,
  protocol: TextProtocolName,
): TextEndpoint {
  if (native.has(protocol)) return textEndpoints[protocol];
  if (translatesTo === null) throw new Error(`the target ${model} speaks no text protocol`);
  return textEndpoints[translatesTo];
}

/**
 * Prepares a call for a target with another protocol.
 * @throws {GatewayError} with status 400 for what the target's protocol cannot express
 */
export function prepareTranslated(
  call: Call,
  translation: Translation,
  target: Target,
  request: ConversationRequest,
): Prepared {
  const upstream = translatedEndpoint(target, translation.codec.rules.protocol);
  const upstreamCodec = upstream.translation.codec;
  const clientCodec = translation.codec;
  const { rules: targetRules } = target;
  const asked =
    targetRules === null
      ? request
      : { ...request, reasoning: mapEffort(targetRules.efforts, request.reasoning) };
  const leftOut = new LeftOut(request.leftOut);
  const { request: fitted, restorer } = fitRequest(asked, {
    rules: upstreamCodec.rules,
    options: target.translation,
    leftOut,
  });
  const body = upstreamCodec.encodeRequest(fitted, target.translation, leftOut);
  const written = Buffer.from(body);
  const onLost = (path: string): void => {
    for (const name of namesRemovedByRules(request, upstreamCodec.rules.protocol, path)) leftOut.add(name);
  };
  const sent =
    targetRules === null
      ? [written]
      : ruledBody(targetRules, written, writtenKind(upstream.protocol), onLost);
  const conversation = request.stored === false ? null : (call.route?.endpoint?.conversation ?? null);
  const keep = conversation === null ? null : answerKeep(call, conversation, false);
  const names = withoutKept(leftOut.names, keep);
  const lost = new LeftOut();
  const searches = fitted.search !== undefined;
  const context = answerContext(call, { request, leftOut: names, keep, searches, lost });
  return {
    gatewayPath: 'translated',
    upstreamPath: upstream.upstreamPath(target.model, request.stream),
    protocol: upstream.protocol,
    contentType: json,
    body: sent,
    source: null,
    leftOut: names,
    hasEffects: upstream.hasEffects,
    transform: new TranslatedTransform({
      upstreamCodec,
      source: {
        model: target.model,
        upstream: target.upstream.name,
        searches,
        lost,
        unsignedThinking: target.translation.unsignedThinking,
      },
      clientCodec,
      context,
      restorer,
      inputEstimate: inputEstimate(request, body.length),
      tokens: tokensOf(call),
      keep,
      secrets: target.upstream.secrets,
    }),
  };
}

/**
 * Removes the members that the gateway itself fulfils: they are not lost, though the target's protocol cannot express them.
 */
function withoutKept(leftOut: LeftOutNames, keep: Keep | null): LeftOutNames {
  const echo = keep?.echo ?? null;
  return echo === null ? leftOut : new LeftOut(leftOut.filter((name) => !Object.hasOwn(echo, name))).names;
}

interface AnswerParts extends Pick<AnswerContext, 'searches' | 'lost'> {
  readonly request: ConversationRequest;
  readonly leftOut: readonly string[];
  readonly keep: Keep | null;
}

function answerContext(call: Call, { request, leftOut, keep, searches, lost }: AnswerParts): AnswerContext {
  const echo = withoutLeftOut(request.echo, leftOut);
  return {
    id: keep?.id ?? answerId(call),
    requestId: call.exchange.id,
    created: Math.floor(Date.now() / 1000),
    model: call.model?.name ?? '',
    userAgent: call.exchange.head.userAgent,
    includeUsage: request.includeUsage,
    functionForm: request.functionForm === true,
    showReasoning: request.reasoning?.show ?? false,
    // Spreading several objects makes one whose members take four times as long to look up.
    echo:
      call.recalled === null && keep === null
        ? echo
        : Object.assign({}, echo, call.recalled?.echo, keep?.echo),
    tools: request.tools,
    clientTools: request.clientTools,
    compaction: request.compaction,
    searches,
    lost,
    sealer: sealerOf(call),
    framing: call.framing,
  };
}

/** The edits that follow from rules for each kind of body, of which there are few. */
const known = new WeakMap<TargetRules, Map<string, ObjectEdits>>();

/**
 * Applies the rules of a target to a body.
 * @param body valid JSON; not changed
 * @param onLost see `editMembers`
 * @returns pieces of it with the new parts between them; only `body` itself if the rules change nothing
 */
export function ruledBody(
  rules: TargetRules,
  body: Buffer,
  kind: RuledBody,
  onLost: OnLost | null = null,
): readonly Buffer[] {
  return editMembers(body, editsFor(rules, kind), onLost);
}

/** The kind of a body that the gateway has written. */
export function writtenKind(protocol: Protocol): RuledBody {
  return { protocol, isTranslated: true, isCount: false, model: null, includeUsage: false };
}

function editsFor(rules: TargetRules, kind: RuledBody): ObjectEdits {
  const { protocol, isTranslated, isCount, model, includeUsage } = kind;
  const name = `${protocol} ${isTranslated} ${isCount} ${includeUsage} ${model}`;
  let all = known.get(rules);
  if (all === undefined) {
    all = new Map();
    known.set(rules, all);
  }
  let edits = all.get(name);
  if (edits === undefined) {
    edits = bodyEdits(rules, kind);
    all.set(name, edits);
  }
  return edits;
}
