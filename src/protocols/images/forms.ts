import { GatewayError } from '../../errors.js';
import type { JsonObject } from '../../wire/json.js';
import type { ImageForm } from './request.js';

const bothForms =
  'Send either \'prompt\' with its settings beside it ({"model", "prompt", "size", …}), or \'input\' with ' +
  '\'messages\' ({"model", "input": {"messages": [{"role": "user", "content": [{"text": …}]}]}, "parameters"}).';

/** Members that hold the input of other endpoints. */
const foreign: readonly (readonly [string, string])[] = [
  ['messages', 'POST /v1/chat/completions'],
  ['contents', 'POST /v1beta/models/{model}:generateContent'],
];

/**
 * Tells which of the two forms a JSON body has: the one whose member is there and not null.
 * @returns the form, or the 400 for a body with both members or neither, which explains the forms
 */
export function formOf(body: JsonObject): ImageForm | GatewayError {
  const hasPrompt = isGiven(body, 'prompt');
  const hasInput = isGiven(body, 'input');
  if (hasPrompt && hasInput)
    return new GatewayError('invalid_request', `The body has both 'prompt' and 'input'. ${bothForms}`, {
      param: 'input',
    });
  if (hasPrompt) return 'prompt';
  if (hasInput) return 'input';
  const stray = foreign.find(([key]) => isGiven(body, key));
  if (stray === undefined)
    return new GatewayError('missing_parameter', `The body has neither 'prompt' nor 'input'. ${bothForms}`, {
      param: 'prompt',
    });
  return new GatewayError(
    'invalid_request_body',
    `This body looks like one for ${stray[1]}: it has '${stray[0]}' and neither 'prompt' nor 'input'. ` +
      `Send it there. ${bothForms}`,
    { param: stray[0] },
  );
}

function isGiven(body: JsonObject, key: string): boolean {
  return Object.hasOwn(body, key) && (body[key] ?? null) !== null;
}
