import type { Target } from '../../config/types.js';
import { GatewayError } from '../../errors.js';
import { type ImageAnswer, madeImages, usageOfAnswer } from '../../protocols/images/answer.js';
import type { ImageStyle } from '../../protocols/images/fetched.js';
import type { ImageRequest } from '../../protocols/images/request.js';
import { mostCount, mostImages } from '../../protocols/images/schema.js';
import { wantedSize } from '../../protocols/images/wanted-size.js';
import type { ImagesTranslation, WantedImages } from '../../protocols/images-translation.js';
import { isObject, parseObject } from '../../wire/json.js';
import { scanBody } from '../../wire/json-scan.js';
import { parseBody } from '../../wire/skeleton.js';
import { answerId, type ResolvedCall } from '../call.js';
import type { Services } from '../services.js';
import { type AskedImages, convertImages } from './convert.js';

/** Serves a call that has been admitted. */
type Serve = (services: Services, call: ResolvedCall) => void;

const none: readonly Target[] = [];

/**
 * How a call of a protocol of texts is served that asks for images, where its model makes them at endpoints of their own.
 * @returns null for any other call
 * @throws {GatewayError} of status 400 for what no image can be made of
 */
export function drawingOf(call: ResolvedCall): Serve | null {
  const { images: translation } = call.route;
  const targets = translation === null ? none : drawingTargets(call);
  if (translation === null || targets.length === 0) return null;
  const body = call.wholeBody();
  const skeleton = parseBody(body, scanBody(body));
  if (!isObject(skeleton) || !translation.asksForImages(skeleton)) return null;
  const wanted = readWanted(translation, body);
  call.units = wanted.count;
  return (services, admitted) =>
    convertImages(services, admitted, targets, askedOf(admitted, translation, wanted));
}

/** A model with a target that takes the call as it came is served by that, as for texts. */
function drawingTargets({ model, route }: ResolvedCall): readonly Target[] {
  const { protocol } = route;
  if (protocol === null || model.targets.some(({ native }) => native.has(protocol))) return none;
  const isOffered = model.protocols.has('images');
  return model.targets.filter(
    ({ native, images }) => native.has('images') && (isOffered || images !== 'openai'),
  );
}

function readWanted(translation: ImagesTranslation, body: Buffer): WantedImages {
  const parsed = parseObject(body.toString('utf8'));
  if (parsed === null) throw new GatewayError('invalid_json', 'The request body is not valid JSON.');
  const wanted = translation.decode(parsed);
  if (wanted.count > mostCount)
    throw new GatewayError('invalid_value', `More than ${mostCount} images are not made at once.`);
  if (wanted.images.length <= mostImages) return wanted;
  // A chat has one more with every turn, and what it goes on from is at its end.
  return {
    ...wanted,
    images: wanted.images.slice(-mostImages),
    leftOut: [...wanted.leftOut, translation.imageMember],
  };
}

function askedOf(call: ResolvedCall, translation: ImagesTranslation, wanted: WantedImages): AskedImages {
  const { endpoint } = call.route;
  if (endpoint === null) throw new Error('the route calls no model');
  const { stream } = call.checkedBody();
  return {
    endpoint,
    // Messages with what is to be drawn, as the form with `input` has them.
    outline: {
      form: 'input',
      model: call.model.name,
      count: wanted.count,
      stream,
      responseFormat: 'b64_json',
      hasImageTexts: false,
    },
    request: (style) => requestOf(call, wanted, style),
    leftOut: (style) => [...wanted.leftOut, ...wantedSize(style, wanted).leftOut],
    write: (answer) => writeAnswer(call, translation, answer),
  };
}

function requestOf(call: ResolvedCall, wanted: WantedImages, style: ImageStyle): ImageRequest {
  const { prompt, images, count } = wanted;
  return {
    operation: images.length === 0 ? 'generate' : 'edit',
    form: 'input',
    model: call.model.name,
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
  };
}

function writeAnswer(call: ResolvedCall, translation: ImagesTranslation, answer: ImageAnswer): string {
  return translation.encode({
    images: madeImages(answer),
    usage: usageOfAnswer(answer),
    model: call.model.name,
    id: answerId(call),
    framing: call.checkedBody().stream ? call.framing : null,
  });
}
