import { type AttemptAdapter, type AttemptPlan, Wait } from '../../attempts/attempts.js';
import type { Target } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { type ImageAnswer, madeImages } from '../../protocols/images/answer.js';
import type { ImageStyle } from '../../protocols/images/fetched.js';
import type { ImageRequest } from '../../protocols/images/request.js';
import { mostCount, mostImages } from '../../protocols/images/schema.js';
import { wantedSize } from '../../protocols/images/wanted-size.js';
import type { ImagesTranslation, WantedImages } from '../../protocols/images-translation.js';
import { isObject } from '../../wire/json.js';
import { scanBody } from '../../wire/json-scan.js';
import { parseBody } from '../../wire/skeleton.js';
import { answerId, type ResolvedCall, type RoutedCall } from '../call.js';
import type { Next } from '../limits/admit.js';
import { setTarget } from '../resolve.js';
import type { Services } from '../services.js';
import { Forwarding } from '../upstream/forward.js';
import { WaitingClient } from '../upstream/waiting-client.js';
import { Conversion, memoized, planFor, type RequestedImages } from './convert.js';

/**
 * Returns the phase that serves a text protocol's call for images, if its model makes them at endpoints of their own.
 * @returns null for any other call
 * @throws {GatewayError} of status 400 if no image can be made from the request and no target takes it unchanged
 */
export function imagePhaseOf(call: ResolvedCall): Next<ResolvedCall> | null {
  const { imagesTranslation: translation, protocol } = call.route;
  const { targets, drawing } = call.model;
  if (translation === null || protocol === null) return null;
  const passes = ({ native }: Target): boolean => native.has(protocol);
  if (drawing.every(passes)) return null;
  const body = call.jsonBody();
  const skeleton = parseBody(body, scanBody(body));
  const count = isObject(skeleton) ? translation.imagesAsked(skeleton) : 0;
  if (count === 0) return null;
  const able = targets.filter((target) => passes(target) || drawing.includes(target));
  const wanted = memoized(() => readWanted(translation, call));
  call.units = able.some(passes) ? Math.min(count, mostCount) : wanted().count;
  return (services, admitted) => {
    const requested = requestedOf(admitted, translation, passes, wanted);
    const plan = planFor(services, admitted, able, requested);
    plan.start(new Drawing(services, setTarget(admitted, plan.target), plan, requested));
  };
}

/** Sends the call to each target in its form: unchanged if the target takes it, else at its image endpoints. */
class Drawing implements AttemptAdapter {
  readonly #call: RoutedCall;
  readonly #plan: AttemptPlan;
  readonly #requested: RequestedImages;
  /** Its relay owns the client's side in both forms, so that a stream also gets keep-alives while images are made. */
  readonly #forwarding: Forwarding;
  readonly #conversion: Conversion;
  readonly #waiting = new Wait();

  constructor(services: Services, call: RoutedCall, plan: AttemptPlan, requested: RequestedImages) {
    this.#call = call;
    this.#plan = plan;
    this.#requested = requested;
    // A target that does not take the call unchanged is called for images, never for text.
    this.#forwarding = new Forwarding(services, call, { ...requested.endpoint, translation: null }, plan);
    this.#conversion = new Conversion(services, call, {
      requested,
      plan,
      waiting: this.#waiting,
      onAnswer: () => {
        this.#forwarding.relay.stopTimers();
        call.exchange.listener = new WaitingClient(services, call);
      },
    });
  }

  attempt(): void {
    if (this.#requested.passes(this.#plan.target)) {
      // An answer that passes unchanged is charged once, whatever it contains.
      this.#call.units = 1;
      this.#forwarding.attempt();
    } else {
      this.#forwarding.standBy(this.#waiting);
      this.#conversion.attempt();
    }
  }

  onNoneLeft(fault: unknown): void {
    this.#forwarding.onNoneLeft(fault);
  }
}

function readWanted(translation: ImagesTranslation, call: ResolvedCall): WantedImages {
  const wanted = translation.decode(call.parsedBody());
  if (wanted.count > mostCount)
    throw new GatewayError('invalid_value', `More than ${mostCount} images are not made at once.`);
  if (wanted.images.length <= mostImages) return wanted;
  // A chat gains images with every turn, and the latest are the ones it continues from.
  return {
    ...wanted,
    images: wanted.images.slice(-mostImages),
    leftOut: [...wanted.leftOut, translation.imageMember],
  };
}

function requestedOf(
  call: ResolvedCall,
  translation: ImagesTranslation,
  passes: (target: Target) => boolean,
  wanted: () => WantedImages,
): RequestedImages {
  const { endpoint } = call.route;
  if (endpoint === null) throw new Error('the route calls no model');
  const { stream } = call.checkedBody();
  return {
    endpoint,
    outline: { stream, responseFormat: 'b64_json' },
    passes,
    request: (style) => requestOf(wanted(), style),
    ownBody: () => null,
    leftOut: ({ images }) => [...wanted().leftOut, ...wantedSize(images, wanted()).leftOut],
    write: (answer) => writeAnswer(call, translation, answer),
  };
}

function requestOf(wanted: WantedImages, style: ImageStyle): ImageRequest {
  const { prompt, images, count } = wanted;
  return {
    operation: images.length === 0 ? 'generate' : 'edit',
    form: 'input',
    prompt,
    images,
    mask: null,
    otherFiles: [],
    negativePrompt: null,
    promptExtend: null,
    watermark: null,
    size: wantedSize(style, wanted).size,
    count: count === 1 ? null : count,
    responseFormat: 'b64_json',
    stream: false,
    extras: {},
    parameters: {},
    unread: [],
  };
}

function writeAnswer(call: ResolvedCall, translation: ImagesTranslation, answer: ImageAnswer): string {
  return translation.encode({
    images: madeImages(answer),
    usage: answer.usage,
    model: call.model.name,
    id: answerId(call),
    framing: call.checkedBody().stream ? call.framing : null,
  });
}
