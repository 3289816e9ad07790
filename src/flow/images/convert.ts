import { performance } from 'node:perf_hooks';
import { Attempt, type AttemptAdapter, type AttemptPlan } from '../../attempts/attempts.js';
import { reportedStatus } from '../../attempts/error-answer.js';
import { failureError, statusError } from '../../attempts/reported-error.js';
import type { FailedAttempt } from '../../attempts/verdict.js';
import type { Target } from '../../config/types.js';
import { estimatedUsage, mediumTokens, ofImages } from '../../conversation/estimate-usage.js';
import { LeftOut } from '../../conversation/left-out.js';
import { isPlausible, type Usage } from '../../conversation/usage.js';
import { GatewayError } from '../../errors.js';
import { targetName } from '../../metrics/recorder.js';
import type { Endpoint } from '../../protocols/endpoint.js';
import {
  errorToReport,
  isVendorAccountError,
  keyError,
} from '../../protocols/error-formats/vendor-account.js';
import { type ImageAnswer, missingBytes, withBytes } from '../../protocols/images/answer.js';
import { imagesUsage, readDashscopeAnswer, readOpenaiAnswer } from '../../protocols/images/answer-decode.js';
import { encodeDashscope } from '../../protocols/images/encode-dashscope.js';
import { encodeOpenai, isRefused } from '../../protocols/images/encode-openai.js';
import { type ImageStyle, imagesToFetch, withFetched } from '../../protocols/images/fetched.js';
import type { ImageOutline } from '../../protocols/images/outline.js';
import type { ImageCall, ImageRequest } from '../../protocols/images/request.js';
import type { Downloaded } from '../../upstream/download.js';
import type { RemoteOptions } from '../../upstream/remote-url.js';
import type { UpstreamFailure } from '../../upstream/types.js';
import { hasTokenRate, isOfTokensOnly } from '../../usage/cost.js';
import { writeForm } from '../../wire/form-data.js';
import { wrongValue } from '../../wire/json.js';
import { withMembers, withoutMembers } from '../../wire/json-skip.js';
import { answerError, isNoImage } from '../answer/content.js';
import { answerLines, streamLines } from '../answer/lines.js';
import { WholeForm } from '../body/whole-form.js';
import { type Call, deadlinesLeft, type ResolvedCall } from '../call.js';
import { keepMemory } from '../memory-budget.js';
import { account } from '../record/account.js';
import { mergeMedia, noteUndelivered } from '../record/consumption.js';
import { routeCall } from '../resolve.js';
import type { Services } from '../services.js';
import {
  type Cancellable,
  type CollectedAnswer,
  collectAnswer,
  failedRequest,
  isFailure,
} from '../upstream/collect.js';
import { fetchFiles, fileHosts, mediaHosts, type WantedFile } from '../upstream/fetch-files.js';
import { clientLines } from '../upstream/head.js';
import { type Prepared, prepareNative, prepareUpload, ruledBody, writtenKind } from '../upstream/prepare.js';
import { WaitingClient } from '../upstream/waiting-client.js';

/** Bytes of an answer: ten images of several megabytes in base64. */
const answerBytes = 128 * 1024 * 1024;
/** Most bytes of all images that a call has fetched by URL. */
const maxFetched = 32 * 1024 * 1024;
/** Fetched images are in memory as received, in base64, and in the body made of them. */
const fetchCopies = 3;

/** A call for images; the request is not decoded before a target needs it in another form. */
export interface RequestedImages {
  readonly endpoint: Endpoint;
  readonly outline: Pick<ImageOutline, 'stream' | 'responseFormat'>;
  /** Whether a target takes the body unchanged, except for a `response_format` that its model refuses. */
  passes(target: Target): boolean;
  /**
   * The request for an upstream of a style that does not take the body unchanged.
   * @throws {GatewayError} of status 400
   */
  request(style: ImageStyle): ImageRequest;
  /**
   * The body itself, with the target's name of the model, if it has the form of its upstream and only its answer is converted;
   * null for any other.
   */
  ownBody(target: Target): Pick<ImageCall, 'path' | 'body'> | null;
  /** Members of the body that such a request leaves out, by the client's own names. */
  leftOut(target: Pick<Target, 'images' | 'model'>): readonly string[];
  /** The body of an answer with images in `outline.responseFormat`. A stream has it as its only event. */
  write(answer: ImageAnswer): string;
}

/**
 * Serves a call whose request or answer has another form at its targets.
 * @throws {GatewayError} when none of them is available
 */
export function convertImages(
  services: Services,
  call: ResolvedCall,
  targets: readonly Target[],
  requested: RequestedImages,
): void {
  const plan = planFor(services, call, targets, requested);
  const waiting = new WaitingClient(services, call);
  plan.start(new Conversion(services, call, { requested, plan, waiting, onAnswer: () => {} }));
}

/**
 * The plan for the targets of a call for images. If the targets that take the body unchanged are unavailable, and no
 * other target can serve it, the call waits for them, since that is not the client's fault.
 * @throws {GatewayError} when no target is available, and of status 400 when none can serve the request
 */
export function planFor(
  services: Services,
  call: ResolvedCall,
  targets: readonly Target[],
  requested: RequestedImages,
): AttemptPlan {
  const plan = routeCall(services, call, targets);
  if (requested.passes(plan.target)) return plan;
  try {
    requested.request(plan.target.images);
    return plan;
  } catch (fault) {
    const plain = targets.filter((target) => requested.passes(target));
    if (plain.length === 0 || !(fault instanceof GatewayError)) throw fault;
    return routeCall(services, call, plain);
  }
}

/** The inputs of a conversion besides its call. */
interface ConversionParts {
  readonly requested: RequestedImages;
  readonly plan: AttemptPlan;
  /** Holds the client's side until there is an answer. */
  readonly waiting: Cancellable;
  /** Called before the answer is sent. */
  readonly onAnswer: () => void;
}

/** Collects the answer of the first target that gives one, and converts it for the client. */
export class Conversion implements AttemptAdapter {
  readonly #services: Services;
  readonly #call: ResolvedCall;
  readonly #requested: RequestedImages;
  readonly #plan: AttemptPlan;
  readonly #waiting: Cancellable;
  readonly #onAnswer: () => void;

  constructor(services: Services, call: ResolvedCall, parts: ConversionParts) {
    this.#services = services;
    this.#call = call;
    this.#requested = parts.requested;
    this.#plan = parts.plan;
    this.#waiting = parts.waiting;
    this.#onAnswer = parts.onAnswer;
  }

  attempt(): void {
    this.#attemptPresent().catch((fault: unknown) => {
      // Images that do not reach the client are not charged, not even in a stream that has begun.
      this.#call.isServed = false;
      this.#call.usage = null;
      this.#call.onFault('promise', fault);
    });
  }

  onNoneLeft(fault: unknown): void {
    this.#call.onFault('promise', fault);
  }

  async #attemptPresent(): Promise<void> {
    const call = this.#call;
    const { target } = this.#plan;
    let imageCall: ImageCall;
    try {
      imageCall = await this.#upstreamCall(target);
    } catch (fault) {
      this.#plan.cannot(fault);
      return;
    }
    const attempt = new Attempt(this.#services, this.#plan);
    const answer = await this.#send(attempt, imageCall);
    if (isFailure(answer)) {
      this.#onRefusal(attempt, answer, failureError(answer));
      return;
    }
    call.answeredAt = performance.now();
    const read = readImageAnswer(target, answer);
    if (read instanceof GatewayError) {
      this.#onRefusal(attempt, answer, read);
      return;
    }
    attempt.succeeded();
    try {
      await this.#onImages(target, answer, read);
    } catch (fault) {
      noteUndelivered(call, attempt, call.usage, call.units);
      throw fault;
    }
  }

  /** Called when the target returned no images. */
  #onRefusal(attempt: Attempt, answer: CollectedAnswer | UpstreamFailure, error: GatewayError): void {
    const isGood = !isFailure(answer) && answer.head.status < 400;
    // Some upstreams report a caller's mistake with status 200.
    const isUnusable = isGood && error.kind !== 'invalid_request';
    if (isGood) {
      attempt.unusable(error);
      const usage = imagesUsage(answer.body);
      if (usage !== null && isPlausible(usage, this.#call.model.tokens, mediumTokens))
        noteUndelivered(this.#call, attempt, usage, usage.calls ?? 0);
    }
    if (isGood && isVendorAccountError(error)) attempt.report(error);
    if (this.#plan.planNext(isUnusable ? unusable(error) : failedRequest(answer))) {
      const backoff = this.#plan.beginPlanned(error);
      if (backoff !== null) this.#waiting.cancel = backoff.cancel;
      return;
    }
    const isOurs = !isFailure(answer) && answer.refusal !== null && answer.refusal.error !== null;
    const passes = this.#requested.passes(attempt.target);
    if (isFailure(answer) || isGood || isOurs || !passes || !isPlain(answer)) throw error;
    this.#respond(answer, answer.body);
  }

  async #upstreamCall(target: Target): Promise<ImageCall> {
    const call = this.#call;
    const { endpoint } = this.#requested;
    call.target = target;
    if (this.#requested.passes(target)) {
      const prepared =
        call.upload === null
          ? prepareNative(this.#services, call, { endpoint, target, apiKey: null })
          : prepareUpload(call, call.upload, endpoint, target);
      const { gatewayPath, leftOut, upstreamPath, contentType, body } = withoutRefused(
        prepared,
        call,
        this.#requested.outline,
        target,
      );
      call.gatewayPath = gatewayPath;
      call.leftOut = leftOut;
      return { path: upstreamPath, contentType, body };
    }
    call.gatewayPath = 'translated';
    const request = this.#requested.request(target.images);
    const own = this.#requested.ownBody(target);
    if (own !== null) return this.#ruled(target, { ...own, contentType: 'application/json' });
    call.leftOut = new LeftOut(this.#requested.leftOut(target)).names;
    const isReady = imagesToFetch(request, target.images).length === 0;
    const ready = isReady ? request : await this.#withImages(target, request);
    const written =
      target.images === 'dashscope'
        ? encodeDashscope(ready, target.model)
        : encodeOpenai(ready, target.model);
    return written.contentType === 'application/json' ? this.#ruled(target, written) : written;
  }

  #ruled({ rules }: Target, written: ImageCall): ImageCall {
    if (rules === null) return written;
    const kind = writtenKind('images');
    return { ...written, body: ruledBody(rules, Buffer.concat(written.body), kind) };
  }

  async #withImages(target: Target, request: ImageRequest): Promise<ImageRequest> {
    const wanted = imagesToFetch(request, target.images);
    const files = await this.#fetch(wanted, mediaHosts(this.#call, target.upstream));
    const noImage = wanted.find(({ url }) => {
      const file = files.get(url);
      return file !== undefined && isNoImage(file.mediaType, file.bytes);
    });
    if (noImage !== undefined) throw wrongValue(noImage.at, 'the URL of an image');
    const read = [...files].map(
      ([url, { bytes, mediaType }]) =>
        [url, { data: bytes, contentType: mediaType, filename: null }] as const,
    );
    return withFetched(request, new Map(read));
  }

  #fetch(wanted: readonly WantedFile[], hosts: RemoteOptions): Promise<ReadonlyMap<string, Downloaded>> {
    const call = this.#call;
    return fetchFiles(this.#services, call, {
      wanted,
      bounds: {
        maxBytes: maxFetched,
        copies: fetchCopies,
        heldBefore: call.heldBytes,
        longestMs: Number.POSITIVE_INFINITY,
        hosts,
      },
      waiting: this.#waiting,
      keep: (file) => ({ kept: file, bytes: file.bytes.length }),
    });
  }

  #send(
    attempt: Attempt,
    { path, contentType, body }: ImageCall,
  ): Promise<CollectedAnswer | UpstreamFailure> {
    const call = this.#call;
    const { upstream } = attempt.target;
    return collectAnswer(
      this.#services,
      call,
      {
        method: 'POST',
        path,
        contentType,
        body,
        upstream,
        protocol: 'images',
        apiKey: this.#plan.apiKey,
        lines: clientLines(call, attempt.target, 'images'),
        target: attempt.target,
        maxBytes: answerBytes,
        deadlines: deadlinesLeft(call),
        attempt,
        hasEffects: true,
        onLeft: () => this.#onLeft(),
      },
      this.#waiting,
    );
  }

  /** Charges images whose client has left while they are made: their upstream has begun with them, and bills them. */
  #onLeft(): void {
    const call = this.#call;
    if (call.exchange.alive) return;
    call.isServed = true;
    const { price } = call.model;
    if (price !== null && hasTokenRate(price.rates))
      call.usage = { ...estimateOf(call.units), partial: true };
  }

  async #onImages(target: Target, answer: CollectedAnswer, imageAnswer: ImageAnswer): Promise<void> {
    const call = this.#call;
    const { body } = answer;
    const { responseFormat } = this.#requested.outline;
    call.units = imageAnswer.images.length;
    call.usage = plausibleUsage(call, target, imageAnswer);
    const { size, quality } = imageAnswer;
    call.made = mergeMedia(call.made, { size, quality, resolution: null });
    call.isServed = true;
    if (
      this.#requested.passes(target) &&
      isInForm(imageAnswer, responseFormat) &&
      !hasPrefix(body, responseFormat)
    ) {
      this.#respond(answer, body);
      return;
    }
    const missing = missingBytes(imageAnswer, responseFormat);
    const whole = missing.length === 0 ? imageAnswer : await this.#withBytes(target, imageAnswer, missing);
    call.gatewayPath = 'translated';
    this.#respond(answer, this.#requested.write(whole));
  }

  async #withBytes(target: Target, imageAnswer: ImageAnswer, urls: readonly string[]): Promise<ImageAnswer> {
    try {
      const wanted = urls.map((url) => ({ url, at: null }));
      const files = await this.#fetch(wanted, fileHosts(this.#call, target.upstream));
      if ([...files.values()].some(({ mediaType, bytes }) => isNoImage(mediaType, bytes)))
        throw new GatewayError('invalid_value', 'its URL leads to something other than an image');
      return withBytes(imageAnswer, new Map([...files].map(([url, { bytes }]) => [url, bytes] as const)));
    } catch (fault) {
      if (!(fault instanceof GatewayError) || fault.kind !== 'invalid_value') throw fault;
      throw new GatewayError('upstream_error', 'An image of the upstream cannot be fetched.', {
        cause: fault.message,
      });
    }
  }

  #respond({ head }: CollectedAnswer, body: Buffer | string): void {
    const call = this.#call;
    if (call.accounted) return;
    this.#onAnswer();
    if (call.exchange.isAnswered) {
      // Keep-alives have started the stream.
      call.exchange.write(Buffer.from(body));
      call.exchange.end();
      account(this.#services, call, 'complete');
      return;
    }
    if (head.status >= 400) call.error = statusError(head, Buffer.from(body));
    keepMemory(this.#services, call, Math.min(call.heldBytes, body.length));
    const isStream = this.#requested.outline.stream && head.status < 400;
    const lines = isStream ? streamLines(call, head) : answerLines(call, head);
    const isTaken = call.exchange.respond(head.status, lines, body);
    if (isTaken) account(this.#services, call, head.status >= 400 ? 'upstream_error' : 'complete');
  }
}

/**
 * Whether a target's model refuses the `response_format` of a call, which is then met by the answer alone: a whole one is
 * converted, and a stream of such a model is base64. It refuses other formats of a stream itself.
 */
export function dropsFormat(
  { responseFormat, stream }: RequestedImages['outline'],
  { model }: Target,
): boolean {
  const isMet = stream ? responseFormat === 'b64_json' : responseFormat !== null;
  return isMet && isRefused(formatName, model);
}

/** Takes the `response_format` out of what a target gets, if `dropsFormat` says so and no rule of the target sets it. */
export function withoutRefused(
  prepared: Prepared,
  { upload }: Call,
  outline: RequestedImages['outline'],
  target: Target,
): Prepared {
  if (!dropsFormat(outline, target)) return prepared;
  if (upload instanceof WholeForm) {
    const rest = upload.parts.filter(({ name }) => name !== 'model' && name !== formatName);
    const form = writeForm([{ name: 'model', data: target.model }, ...rest]);
    return { ...prepared, ...form, gatewayPath: 'spliced' };
  }
  if (setsFormat(target)) return prepared;
  const body = withoutFormat(prepared.body);
  return body === null ? prepared : { ...prepared, body, gatewayPath: 'spliced' };
}

const formatName = 'response_format';
const formatNames: ReadonlySet<string> = new Set([formatName]);

function setsFormat({ rules }: Target): boolean {
  return rules?.members.some(({ kind, path }) => kind === 'set' && path[0] === formatName) ?? false;
}

function withoutFormat(body: readonly Buffer[]): readonly Buffer[] | null {
  const found = withoutMembers(Buffer.concat(body), formatNames);
  return found === null ? null : [withMembers('', found.rest)];
}

/** Estimates the tokens of some images. */
function estimateOf(images: number): Usage {
  return ofImages(estimatedUsage(mediumTokens, mediumTokens * images));
}

/** Returns the reported usage, or an estimate if no call can have had it, or if only its tokens have a price. */
function plausibleUsage(call: ResolvedCall, target: Target, { usage, images }: ImageAnswer): Usage | null {
  const estimate = estimateOf(images.length);
  if (usage === null) return isOfTokensOnly(call.model.price) ? estimate : null;
  if (isPlausible(usage, call.model.tokens, mediumTokens)) return usage;
  call.implausible = { target: targetName(target), usage, seconds: 0 };
  return estimate;
}

/**
 * The failure of an unusable answer: images may have been made, unless its error stands for a status that rules it out.
 */
function unusable(error: GatewayError): FailedAttempt {
  const reason = reportedStatus(error) ?? 'unusable_answer';
  return { reason, bytesSent: true, replayable: true, hasEffects: true, sentMs: 0 };
}

/** Reads the images of an answer, or returns what is wrong with it. */
function readImageAnswer(target: Target, answer: CollectedAnswer): ImageAnswer | GatewayError {
  const { head, body } = answer;
  const refusal = answerError(head, false);
  if (refusal !== null) return refusal;
  if (head.status >= 400) return answer.refusal?.error ?? statusError(head, body);
  // Usually in a URL from which clients would fetch the image.
  const ofKey = keyError(body, target.upstream.secrets);
  if (ofKey !== null) return ofKey;
  try {
    return target.images === 'dashscope' ? readDashscopeAnswer(body) : readOpenaiAnswer(body);
  } catch (fault) {
    if (!(fault instanceof GatewayError)) throw fault;
    return errorToReport(fault, body.toString('utf8'), target.upstream.secrets);
  }
}

/** Whether the client can get the answer unchanged. */
function isPlain({ head }: CollectedAnswer): boolean {
  return answerError(head, false) === null;
}

/** Whether an answer may hold data URLs in place of base64, as some upstreams send. A false match only costs a rewrite. */
function hasPrefix(body: Buffer, format: ImageOutline['responseFormat']): boolean {
  return format === 'b64_json' && body.includes('"data:');
}

function isInForm({ images }: ImageAnswer, format: ImageOutline['responseFormat']): boolean {
  if (format === null) return true;
  return images.every(({ url, base64 }) =>
    format === 'url' ? url !== null && base64 === null : base64 !== null && url === null,
  );
}

/** Memoizes `make`, which is called at the first use: several targets may need its result, or none. */
export function memoized<Made extends object>(make: () => Made): () => Made {
  let made: Made | null = null;
  return () => {
    made ??= make();
    return made;
  };
}
