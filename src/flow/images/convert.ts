import type { Model, Target } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import type { ImageCall } from '../../protocols/images/call.js';
import { encodeDashscope } from '../../protocols/images/encode-dashscope.js';
import { encodeOpenai } from '../../protocols/images/encode-openai.js';
import { imagesToFetch, withFetched } from '../../protocols/images/fetched.js';
import {
  type ImageReply,
  missingBytes,
  usageOfReply,
  withBytes,
  writeReply,
} from '../../protocols/images/reply.js';
import { readDashscopeReply, readOpenaiReply } from '../../protocols/images/reply-decode.js';
import type { ImageRequest } from '../../protocols/images/request.js';
import type { Endpoint } from '../../protocols/protocol.js';
import type { FailedAttempt } from '../../routing/verdict.js';
import type { UpstreamFailure } from '../../upstream/client.js';
import type { RemoteOptions } from '../../upstream/remote-url.js';
import { account } from '../account.js';
import { reserveBody, shrinkReservation } from '../admit.js';
import { answerLines } from '../answer.js';
import { answerRefusal } from '../answer-kind.js';
import { type Answered, ask, failedQuestion, isFailure } from '../ask.js';
import { attend, type Waiting } from '../attend.js';
import type { Call } from '../call.js';
import type { Candidates } from '../candidates.js';
import { deadlinesLeft, timeLeft } from '../deadlines.js';
import { failureError, statusError } from '../failure.js';
import { fetchFiles, type WantedFile } from '../fetch-files.js';
import { idempotencyLine } from '../idempotency.js';
import { filePlaces } from '../own-address.js';
import { prepareNative, prepareUpload } from '../prepare.js';
import { routeCall } from '../route.js';
import type { Services } from '../services.js';
import { Trial } from '../trial.js';

/** Ten images of several megabytes in base64. */
const answerBytes = 128 * 1024 * 1024;
/** Bytes of all images of a call that are fetched by URL. */
const mostFetched = 32 * 1024 * 1024;
/** They are in memory as they come, in base64, and in the body that is made of them. */
const fetchCopies = 3;
/** One call may not take more than this part of what a worker may hold. */
const fetchShare = 8;

/** Serves a call whose request or answer has another form at its targets. */
export function convertImages(
  services: Services,
  call: Call,
  endpoint: Endpoint,
  request: ImageRequest,
): void {
  attend(services, call, (waiting) => new Conversion(services, call, endpoint, waiting).run(request));
}

class Conversion {
  readonly #services: Services;
  readonly #call: Call;
  readonly #endpoint: Endpoint;
  readonly #waiting: Waiting;

  constructor(services: Services, call: Call, endpoint: Endpoint, waiting: Waiting) {
    this.#services = services;
    this.#call = call;
    this.#endpoint = endpoint;
    this.#waiting = waiting;
  }

  async run(request: ImageRequest): Promise<void> {
    const call = this.#call;
    const candidates = routeCall(this.#services, call, (call.model as Model).targets);
    let failure: GatewayError | null = null;
    for (;;) {
      const { target } = candidates;
      let question: ImageCall;
      try {
        question = await this.#questionFor(target, request);
      } catch (fault) {
        // The next target may be able to say it.
        if (fault instanceof GatewayError && candidates.skip()) continue;
        throw failure ?? fault;
      }
      const trial = new Trial(this.#services, candidates);
      const answer = await this.#ask(candidates, trial, question);
      if (!isFailure(answer)) call.answeredAt = performance.now();
      const read = isFailure(answer) ? failureError(answer) : readReply(target, answer);
      if (!(read instanceof GatewayError)) {
        trial.succeeded();
        await this.#onReply(target, request, answer as Answered, read);
        return;
      }
      const isGood = !isFailure(answer) && answer.head.status < 400;
      // Some upstreams tell a mistake of the caller with status 200.
      const isUnusable = isGood && read.kind !== 'invalid_request';
      if (isUnusable) trial.failed('unusable_answer', true);
      else if (isGood) trial.succeeded();
      const wait = candidates.after(isUnusable ? unusable : failedQuestion(answer, true));
      if (wait === null) {
        if (isFailure(answer) || isGood || !isExact(target, request) || !isPlain(answer)) throw read;
        this.#respond(answer, answer.body);
        return;
      }
      failure = read;
      if (wait > 0) await this.#waiting.pause(wait);
    }
  }

  async #questionFor(target: Target, request: ImageRequest): Promise<ImageCall> {
    const call = this.#call;
    call.target = target;
    if (isExact(target, request)) {
      const prepared =
        call.upload === null
          ? prepareNative(call, this.#endpoint, target)
          : prepareUpload(call, call.upload, this.#endpoint, target);
      call.path = prepared.path;
      return { path: prepared.upstreamPath, contentType: prepared.contentType, body: prepared.body };
    }
    call.path = 'translated';
    const isReady = imagesToFetch(request, target.images).length === 0;
    const ready = isReady ? request : await this.#withImages(target, request);
    return target.images === 'openai'
      ? encodeOpenai(ready, target.model)
      : encodeDashscope(ready, target.model);
  }

  async #withImages(target: Target, request: ImageRequest): Promise<ImageRequest> {
    const files = await this.#fetch(imagesToFetch(request, target.images), {
      allowPrivate: target.upstream.fetchPrivate,
    });
    const read = [...files].map(
      ([url, { bytes, mediaType }]) =>
        [url, { data: bytes, contentType: mediaType, filename: null }] as const,
    );
    return withFetched(request, new Map(read));
  }

  async #fetch(wanted: readonly WantedFile[], places: RemoteOptions): ReturnType<typeof fetchFiles> {
    const call = this.#call;
    const { limits } = call.running.snapshot;
    const maxBytes = Math.min(mostFetched, Math.floor(limits.bufferedBytes / fetchShare / fetchCopies));
    const before = call.reserved;
    reserveBody(this.#services, call, fetchCopies * maxBytes);
    let bytes = 0;
    try {
      const files = await fetchFiles(
        wanted,
        {
          maxBytes,
          timeoutMs: timeLeft(call),
          places,
        },
        this.#waiting,
      );
      for (const file of files.values()) bytes += file.bytes.length;
      return files;
    } finally {
      // What there was room for and did not come is for others.
      if (!call.accounted) shrinkReservation(this.#services, call, before + fetchCopies * bytes);
    }
  }

  #ask(
    candidates: Candidates,
    trial: Trial,
    { path, contentType, body }: ImageCall,
  ): Promise<Answered | UpstreamFailure> {
    const call = this.#call;
    const { upstream } = candidates.target;
    return new Promise((resolve) => {
      this.#waiting.cancel = ask(
        this.#services,
        call,
        {
          method: 'POST',
          path,
          contentType,
          body,
          upstream,
          wire: 'images',
          apiKey: upstream.apiKeys[candidates.key] ?? null,
          lines: call.exchange.head.forwarded + idempotencyLine(call),
          maxBytes: answerBytes,
          deadlines: deadlinesLeft(call),
          trial,
        },
        resolve,
      );
    });
  }

  async #onReply(target: Target, request: ImageRequest, answer: Answered, reply: ImageReply): Promise<void> {
    const call = this.#call;
    const { body } = answer;
    const { responseFormat } = request;
    call.usage = usageOfReply(reply);
    call.units = reply.images.length;
    call.isServed = true;
    if (isExact(target, request) && isInForm(reply, responseFormat) && !hasPrefix(body, responseFormat)) {
      this.#respond(answer, body);
      return;
    }
    const missing = missingBytes(reply, responseFormat);
    const whole = missing.length === 0 ? reply : await this.#withBytes(target, reply, missing);
    call.path = 'translated';
    this.#respond(answer, writeReply(whole, responseFormat, Date.now()));
  }

  async #withBytes(target: Target, reply: ImageReply, urls: readonly string[]): Promise<ImageReply> {
    try {
      const wanted = urls.map((url) => ({ url, at: null }));
      const files = await this.#fetch(wanted, filePlaces(target.upstream));
      return withBytes(reply, new Map([...files].map(([url, { bytes }]) => [url, bytes] as const)));
    } catch (fault) {
      if (!(fault instanceof GatewayError) || fault.kind !== 'invalid_value') throw fault;
      throw new GatewayError('upstream_error', 'An image that the upstream made cannot be fetched.', {
        cause: fault.message,
      });
    }
  }

  #respond({ head }: Answered, body: Buffer | string): void {
    const call = this.#call;
    if (call.accounted) return;
    if (head.status >= 400) call.error = statusError(head, Buffer.from(body));
    shrinkReservation(this.#services, call, Math.min(call.reserved, body.length));
    const isTaken = call.exchange.respond(head.status, answerLines(call, head), body);
    if (isTaken) account(this.#services, call, head.status >= 400 ? 'upstream_error' : 'complete');
    else call.endedAt = 0;
  }
}

/** An answer that is no use, of a request that may be made again. */
const unusable: FailedAttempt = {
  reason: 'unusable_answer',
  bytesSent: true,
  headRelayed: false,
  replayable: true,
};

/** The images of an answer, or what is wrong with it. */
function readReply(target: Target, answer: Answered): ImageReply | GatewayError {
  const { head, body } = answer;
  const refusal = answerRefusal(head, false);
  if (refusal !== null) return refusal;
  if (head.status >= 400) return statusError(head, body);
  try {
    return target.images === 'openai' ? readOpenaiReply(body) : readDashscopeReply(body);
  } catch (fault) {
    if (fault instanceof GatewayError) return fault;
    throw fault;
  }
}

/** The client can be given the answer as it is. */
function isPlain({ head }: Answered): boolean {
  return answerRefusal(head, false) === null;
}

/** The target takes the client's body as it is, and the client the target's answer. */
function isExact(target: Target, request: ImageRequest): boolean {
  return target.images === 'openai' && request.form === 'prompt';
}

/** Some upstreams give a data URL where base64 is asked for. What looks like one elsewhere only costs a rewriting. */
function hasPrefix(body: Buffer, format: ImageRequest['responseFormat']): boolean {
  return format === 'b64_json' && body.includes('"data:');
}

function isInForm({ images }: ImageReply, format: ImageRequest['responseFormat']): boolean {
  if (format === null) return true;
  return images.every(({ url, base64 }) =>
    format === 'url' ? url !== null && base64 === null : base64 !== null && url === null,
  );
}
