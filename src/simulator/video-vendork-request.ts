import { isAddress, isBase64 } from './image-reference.js';
import { isObject, type JsonObject } from './json.js';
import { VendorError } from './media-route.js';
import { promptWishes } from './prompt-wishes.js';
import { vendorNumber, vendorText, vendorWord } from './vendor-values.js';
import type { VideoWish } from './video-task.js';

/** The vendor's number for a parameter with a wrong value. */
export const wrongValue = 1201;

const mostCharacters = 2500;
const mostExternalId = 64;
const cameraTypes = ['simple', 'down_back', 'forward_up', 'right_turn_forward', 'left_turn_forward'];
const cameraMoves = ['horizontal', 'vertical', 'pan', 'tilt', 'roll', 'zoom'];
const mostCameraMove = 10;
const shapes = { '16:9': [16, 9], '9:16': [9, 16], '1:1': [1, 1] } as const;
/** Pixels of the shorter edge. */
const shortEdges = { std: 720, pro: 1080 } as const;
const fps = 24;

/**
 * Reads and checks a native body.
 * @throws VendorError with what a caller did wrong.
 */
export function readVendorkWish(body: JsonObject, operation: 'text' | 'image'): VideoWish {
  const model = vendorText(body, 'model_name', mostCharacters, refused);
  if (model !== 'sim-video') {
    throw refused(`model_name value '${String(model)}' is invalid`);
  }
  const prompt = vendorText(body, 'prompt', mostCharacters, refused);
  const images = operation === 'image' ? [image(body, 'image'), image(body, 'image_tail')] : [];
  if (operation === 'text' && (prompt === null || prompt === '')) {
    throw refused('prompt must not be empty');
  }
  if (operation === 'image' && images.every((one) => one === null)) {
    throw refused('image and image_tail cannot be empty at the same time');
  }
  vendorText(body, 'negative_prompt', mostCharacters, refused);
  vendorNumber(body, 'cfg_scale', { least: 0, most: 1, whole: false }, refused);
  vendorWord(body, 'sound', ['off', 'on'], refused);
  readCamera(body);
  const callback = vendorText(body, 'callback_url', mostCharacters, refused);
  if (callback !== null && callback !== '' && !isAddress(callback)) {
    throw refused('callback_url must be an http(s) URL');
  }
  const short = shortEdges[vendorWord(body, 'mode', ['std', 'pro'], refused)];
  const [across, down] = shapes[vendorWord(body, 'aspect_ratio', ['16:9', '9:16', '1:1'], refused)];
  const unit = short / Math.min(across, down);
  return {
    format: 'vendork',
    operation,
    model,
    wishes: promptWishes(prompt ?? ''),
    width: across * unit,
    height: down * unit,
    seconds: Number(vendorWord(body, 'duration', ['5', '10'], refused)),
    fps,
    seed: null,
    images,
    externalId: vendorText(body, 'external_task_id', mostExternalId, refused) || null,
  };
}

function image(body: JsonObject, name: string): string | null {
  const value = body[name] ?? null;
  if (value === null || value === '') {
    return null;
  }
  if (typeof value !== 'string' || !(isAddress(value) || isBase64(value))) {
    throw refused(`${name} must be an http(s) URL or base64 without a prefix such as data:image/png;base64,`);
  }
  return value;
}

function readCamera(body: JsonObject): void {
  const camera = body.camera_control ?? null;
  if (camera === null) {
    return;
  }
  const type = isObject(camera) ? camera.type : null;
  if (!isObject(camera) || typeof type !== 'string' || !cameraTypes.includes(type)) {
    throw refused(`camera_control.type must be one of ${cameraTypes.join(', ')}`);
  }
  if (type !== 'simple') {
    return;
  }
  const config = camera.config;
  const moves = isObject(config) ? cameraMoves.filter((name) => (config[name] ?? 0) !== 0) : [];
  if (!isObject(config) || moves.length !== 1) {
    throw refused('camera_control.config must have exactly one value that is not zero');
  }
  const bounds = { least: -mostCameraMove, most: mostCameraMove, whole: false };
  vendorNumber(config, moves[0] ?? '', bounds, refused);
}

function refused(message: string): VendorError {
  return new VendorError(400, wrongValue, message);
}
