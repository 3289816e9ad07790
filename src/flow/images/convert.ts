import { performance } from 'node:perf_hooks';
import { type Asker, Attempt, type AttemptPlan } from '../../attempts/attempts.js';
import { toldStatus } from '../../attempts/error-answer.js';
import { failureError, statusError } from '../../attempts/told-error.js';
import type { FailedAttempt } from '../../attempts/verdict.js';
import type { Target } from '../../config/types.js';
import { LeftOut } from '../../conversation/left-out.js';
import { GatewayError } from '../../errors.js';
import type { Endpoint } from '../../protocols/endpoint.js';
import { isVendorAccountError, keyError, toldError } from '../../protocols/error-formats/vendor-account.js';
import { type ImageAnswer, missingBytes, withBytes } from '../../protocols/images/answer.js';
import { readDashscopeAnswer, readOpenaiAnswer } from '../../protocols/images/answer-decode.js';
import { encodeDashscope } from '../../protocols/images/encode-dashscope.js';
import { encodeOpenai } from '../../protocols/images/encode-openai.js';
import { type ImageStyle, imagesToFetch, withFetched } from '../../protocols/images/fetched.js';
import type { ImageOutline } from '../../protocols/images/outline.js';
import type { ImageCall, ImageRequest } from '../../protocols/images/request.js';
import type { Downloaded } from '../../upstream/download.js';
import type { RemoteOptions } from '../../upstream/remote-url.js';
import type { UpstreamFailure } from '../../upstream/types.js';
import { answerError, isNoImage } from '../answer/content.js';
import { answerLines, streamLines } from '../answer/lines.js';
import { deadlinesLeft, type ResolvedCall } from '../call.js';
import { holdInAll, keepMemory } from '../memory-budget.js';
import { account } from '../record/account.js';
import { joinMade } from '../record/consumption.js';
import { routeCall } from '../resolve.js';
import type { Services } from '../services.js';
import { type Answered, ask, failedRequest, isFailure, type Waiter } from '../upstream/ask.js';
import { WaitingClient } from '../upstream/attend.js';
import { fetchFiles, fileHosts, mediaHosts, type WantedFile } from '../upstream/fetch-files.js';
import { clientLines } from '../upstream/head.js';
import { prepareNative, prepareUpload, ruledBody, writtenKind } from '../upstream/prepare.js';

/** Ten images of several megabytes in base64. */
const answerBytes = 128 * 1024 * 1024;
/** Bytes of all images of a call that are fetched by URL. */
const mostFetched = 32 * 1024 * 1024;
/** They are in memory as they come, in base64, and in the body that is made of them. */
const fetchCopies = 3;
/** One call may not take more than this part of what a worker may hold. */
const fetchShare = 8;

/** A call for images, which are not decoded before a target needs them in another form. */
export interface AskedImages {
  readonly endpoint: Endpoint;
  readonly outline: Pick<ImageOutline, 'stream' | 'responseFormat'>;
  /** Whether a target takes the body as it came. */
  passes(target: Target): boolean;
  /**
   * The request for an upstream of the style that does not take the body as it came.
   * @throws {GatewayError} of status 400
   */
  request(style: ImageStyle): ImageRequest;
  /** Members of the body that such a request does not say, by the client's own names. */
  leftOut(target: Pick<Target, 'images' | 'model'>): readonly string[];
  /** The body of an answer whose images are as `outline.responseFormat` has them. A stream has it as its only event. */
  write(answer: ImageAnswer): string;
}

/**
 * Serves a call whose request or answer has another form at its targets.
 * @throws {GatewayError} when none of them may be asked
 */
export function convertImages(
  services: Services,
  call: ResolvedCall,
  targets: readonly Target[],
  asked: AskedImages,
): void {
  const plan = planFor(services, call, targets, asked);
  const waiting = new WaitingClient(services, call);
  plan.start(new Conversion(services, call, { asked, plan, waiting, onAnswer: () => {} }));
}

/**
 * The plan for the targets of a call for images. Where those that take the body as it came cannot be asked now, and no
 * other target can be asked for what is in it, the call waits for them: it is no mistake of the client's.
 * @throws {GatewayError} when none of the targets may be asked, and of status 400 when none can be
 */
export function planFor(
  services: Services,
  call: ResolvedCall,
  targets: readonly Target[],
  asked: AskedImages,
): AttemptPlan {
  const plan = routeCall(services, call, targets);
  if (asked.passes(plan.target)) return plan;
  try {
    asked.request(plan.target.images);
    return plan;
  } catch (fault) {
    const plain = targets.filter((target) => asked.passes(target));
    if (plain.length === 0 || !(fault instanceof GatewayError)) throw fault;
    return routeCall(services, call, plain);
  }
}

/** What a conversion goes by beside its call. */
interface ConversionParts {
  readonly asked: AskedImages;
  readonly plan: AttemptPlan;
  /** The client's side until there is an answer. */
  readonly waiting: Waiter;
  /** Hears that it leaves next. */
  readonly onAnswer: () => void;
}

/** Collects the answer of the target that gives one. */
export class Conversion implements Asker {
  readonly #services: Services;
  readonly #call: ResolvedCall;
  readonly #asked: AskedImages;
  readonly #plan: AttemptPlan;
  readonly #waiting: Waiter;
  readonly #onAnswer: () => void;

  constructor(services: Services, call: ResolvedCall, parts: ConversionParts) {
    this.#services = services;
    this.#call = call;
    this.#asked = parts.asked;
    this.#plan = parts.plan;
    this.#waiting = parts.waiting;
    this.#onAnswer = parts.onAnswer;
  }

  ask(): void {
    this.#askPresent().catch((fault: unknown) => {
      // Images that were made and do not reach the client are not charged, in a stream that has begun either.
      this.#call.isServed = false;
      this.#call.usage = null;
      this.#call.onFault('promise', fault);
    });
  }

  onNoneLeft(fault: unknown): void {
    this.#call.onFault('promise', fault);
  }

  async #askPresent(): Promise<void> {
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
    await this.#onImages(target, answer, read);
  }

  /** The target gave no images. */
  #onRefusal(attempt: Attempt, answer: Answered | UpstreamFailure, error: GatewayError): void {
    const isGood = !isFailure(answer) && answer.head.status < 400;
    // Some upstreams tell a mistake of the caller with status 200.
    const isUnusable = isGood && error.kind !== 'invalid_request';
    if (isGood) attempt.unusable(error);
    if (isGood && isVendorAccountError(error)) attempt.report(error);
    if (this.#plan.planNext(isUnusable ? unusable(error) : failedRequest(answer, true))) {
      const backoff = this.#plan.beginPlanned(error);
      if (backoff !== null) this.#waiting.cancel = backoff.cancel;
      return;
    }
    const isOurs = !isFailure(answer) && answer.refusal !== null && answer.refusal.error !== null;
    const passes = this.#asked.passes(attempt.target);
    if (isFailure(answer) || isGood || isOurs || !passes || !isPlain(answer)) throw error;
    this.#respond(answer, answer.body);
  }

  async #upstreamCall(target: Target): Promise<ImageCall> {
    const call = this.#call;
    const { endpoint } = this.#asked;
    call.target = target;
    if (this.#asked.passes(target)) {
      const prepared =
        call.upload === null
          ? prepareNative(this.#services, call, { endpoint, target, apiKey: null })
          : prepareUpload(call, call.upload, endpoint, target);
      call.gatewayPath = prepared.gatewayPath;
      call.leftOut = prepared.leftOut;
      return { path: prepared.upstreamPath, contentType: prepared.contentType, body: prepared.body };
    }
    call.gatewayPath = 'translated';
    const request = this.#asked.request(target.images);
    call.leftOut = new LeftOut(this.#asked.leftOut(target)).names;
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
    const read = [...files].map(
      ([url, { bytes, mediaType }]) =>
        [url, { data: bytes, contentType: mediaType, filename: null }] as const,
    );
    return withFetched(request, new Map(read));
  }

  async #fetch(
    wanted: readonly WantedFile[],
    hosts: RemoteOptions,
  ): Promise<ReadonlyMap<string, Downloaded>> {
    const call = this.#call;
    const { limits } = call.running.snapshot;
    const maxBytes = Math.min(mostFetched, Math.floor(limits.bufferedBytes / fetchShare / fetchCopies));
    const before = call.heldBytes;
    const hold = (bytes: number): void => {
      if (!call.accounted) holdInAll(this.#services, call, before + bytes);
    };
    let bytes = 0;
    try {
      const files = await fetchFiles(this.#services, call, {
        wanted,
        bounds: { maxBytes, longestMs: Number.POSITIVE_INFINITY, hosts, hold },
        waiting: this.#waiting,
        keep: (file) => ({ kept: file, bytes: file.bytes.length }),
      });
      for (const file of files.values()) bytes += file.bytes.length;
      hold(fetchCopies * bytes);
      return files;
    } catch (fault) {
      hold(0);
      throw fault;
    }
  }

  #send(attempt: Attempt, { path, contentType, body }: ImageCall): Promise<Answered | UpstreamFailure> {
    const call = this.#call;
    const { upstream } = attempt.target;
    return ask(
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
      },
      this.#waiting,
    );
  }

  async #onImages(target: Target, answer: Answered, imageAnswer: ImageAnswer): Promise<void> {
    const call = this.#call;
    const { body } = answer;
    const { responseFormat } = this.#asked.outline;
    call.usage = imageAnswer.usage;
    call.units = imageAnswer.images.length;
    const { size, quality } = imageAnswer;
    call.made = joinMade(call.made, { size, quality, resolution: null });
    call.isServed = true;
    if (
      this.#asked.passes(target) &&
      isInForm(imageAnswer, responseFormat) &&
      !hasPrefix(body, responseFormat)
    ) {
      this.#respond(answer, body);
      return;
    }
    const missing = missingBytes(imageAnswer, responseFormat);
    const whole = missing.length === 0 ? imageAnswer : await this.#withBytes(target, imageAnswer, missing);
    call.gatewayPath = 'translated';
    this.#respond(answer, this.#asked.write(whole));
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

  #respond({ head }: Answered, body: Buffer | string): void {
    const call = this.#call;
    if (call.accounted) return;
    this.#onAnswer();
    if (call.exchange.isAnswered) {
      // Keep-alives have begun the stream.
      call.exchange.write(Buffer.from(body));
      call.exchange.end();
      account(this.#services, call, 'complete');
      return;
    }
    if (head.status >= 400) call.error = statusError(head, Buffer.from(body));
    keepMemory(this.#services, call, Math.min(call.heldBytes, body.length));
    const isStream = this.#asked.outline.stream && head.status < 400;
    const lines = isStream ? streamLines(call, head) : answerLines(call, head);
    const isTaken = call.exchange.respond(head.status, lines, body);
    if (isTaken) account(this.#services, call, head.status >= 400 ? 'upstream_error' : 'complete');
  }
}

/** An answer that cannot be used: unless its words stand for a status that proves otherwise, images may have been made. */
function unusable(error: GatewayError): FailedAttempt {
  const reason = toldStatus(error) ?? 'unusable_answer';
  return { reason, bytesSent: true, replayable: true, hasEffects: true, sentMs: 0 };
}

/** The images of an answer, or what is wrong with it. */
function readImageAnswer(target: Target, answer: Answered): ImageAnswer | GatewayError {
  const { head, body } = answer;
  const refusal = answerError(head, false);
  if (refusal !== null) return refusal;
  if (head.status >= 400) return answer.refusal?.error ?? statusError(head, body);
  // In a URL as a rule, by which clients would fetch the image.
  const ofKey = keyError(body, target.upstream.secrets);
  if (ofKey !== null) return ofKey;
  try {
    return target.images === 'dashscope' ? readDashscopeAnswer(body) : readOpenaiAnswer(body);
  } catch (fault) {
    if (!(fault instanceof GatewayError)) throw fault;
    return toldError(fault, body.toString('utf8'), target.upstream.secrets);
  }
}

/** The client can be given the answer as it is. */
function isPlain({ head }: Answered): boolean {
  return answerError(head, false) === null;
}

/** Some upstreams give a data URL where base64 is asked for. What looks like one elsewhere only costs a rewriting. */
function hasPrefix(body: Buffer, format: ImageOutline['responseFormat']): boolean {
  return format === 'b64_json' && body.includes('"data:');
}

function isInForm({ images }: ImageAnswer, format: ImageOutline['responseFormat']): boolean {
  if (format === null) return true;
  return images.every(({ url, base64 }) =>
    format === 'url' ? url !== null && base64 === null : base64 !== null && url === null,
  );
}

/** @returns gives what `make` makes, once, when it is first asked for: several targets may need it, or none */
export function lazy<Made extends object>(make: () => Made): () => Made {
  let made: Made | null = null;
  return () => {
    made ??= make();
    return made;
  };
}
