import { GatewayError } from '../../errors.js';
import { type ImageAnswer, madeImages, usageOfAnswer } from '../../protocols/images/answer.js';
import type { ImageStyle } from '../../protocols/images/fetched.js';
import type { ImageRequest } from '../../protocols/images/request.js';
import { mostCount, mostImages } from '../../protocols/images/schema.js';
import { wantedSize } from '../../protocols/images/wanted-size.js';
import type { ImagesTranslation, WantedImages } from '../../protocols/images-translation.js';
import { isObject } from '../../wire/json.js';
import { scanBody } from '../../wire/json-scan.js';
import { parseBody } from '../../wire/skeleton.js';
import { answerId, type ResolvedCall } from '../call.js';
import type { Services } from '../services.js';
import { type AskedImages, convertImages } from './convert.js';

/** Serves a call that has been admitted. */
type Serve = (services: Services, call: ResolvedCall) => void;

/**
 * How a call of a protocol of texts is served that asks for images, of a model that makes them at endpoints of their own.
 * @returns null for any other call
 * @throws {GatewayError} of status 400 for what no image can be made of
 */
export function drawingOf(call: ResolvedCall): Serve | null {
  const { images: translation, protocol } = call.route;
  const { targets, drawing } = call.model;
  if (translation === null || protocol === null) return null;
  // A target that takes the call as it came serves it, as for texts.
  if (targets.some(({ native }) => native.has(protocol))) return null;
  const body = call.wholeBody();
  const skeleton = parseBody(body, scanBody(body));
  if (!isObject(skeleton) || !translation.asksForImages(skeleton)) return null;
  const wanted = readWanted(translation, call);
  call.units = wanted.count;
  return (services, admitted) =>
    convertImages(services, admitted, drawing, askedOf(admitted, translation, wanted));
}

function readWanted(translation: ImagesTranslation, call: ResolvedCall): WantedImages {
  const wanted = translation.decode(call.parsedBody());
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
      size: null,
      quality: null,
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
