import { GatewayError } from '../../errors.js';

/** The 400 for an image, or a mask, in a body that asks for a new image. @param at its path */
export function imageOnGeneration(at: string): GatewayError {
  return new GatewayError(
    'unsupported_parameter',
    `'${at}' is not supported here: an image is made of a text alone. Send images to POST /v1/images/edits.`,
    { param: at },
  );
}

/** The 400 for a setting that the model's upstream cannot say and that may not be left out. @param at its path */
export function unsupportedByUpstream(at: string, detail: string): GatewayError {
  return new GatewayError('unsupported_parameter', `'${at}' is not supported for this model: ${detail}.`, {
    param: at,
  });
}
