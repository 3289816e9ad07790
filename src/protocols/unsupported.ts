import type { TargetOptions } from '../conversation/codec.js';
import type { ConversationRequest, TextProtocolName } from '../conversation/request.js';
import { isSetByClient, type Setting, settingName } from '../conversation/setting-names.js';
import type { GatewayError } from '../errors.js';
import { memberError, nameOfType } from '../wire/reading.js';

/** Returns the detail of an error message that names the type of the refused value. */
export function ofType(type: unknown): string {
  return `of type '${nameOfType(type)}'`;
}

/**
 * Returns the 400 for a setting that the upstream's protocol cannot express.
 * @param to the upstream's protocol
 * @param detail what exactly, if the name of the field does not say it: `with more than one answer`
 */
export function unsupportedSetting(
  request: Pick<ConversationRequest, 'from'>,
  setting: Setting,
  to: TextProtocolName,
  detail = '',
): GatewayError {
  return unsupportedAt(settingName(request.from, setting), to, detail);
}

/**
 * Returns the 400 for something in the client's body that the upstream's protocol cannot express.
 * @param at path in the client's body
 */
export function unsupportedAt(at: string, to: TextProtocolName, detail: string): GatewayError {
  const what = detail === '' ? '' : ` ${detail}`;
  return memberError(
    'unsupported_parameter',
    at,
    `'${at}'${what} cannot be translated for this model, whose upstream speaks the ${to} protocol. ` +
      'Leave it out, or use a model that is served in your own protocol.',
  );
}

/**
 * Returns the 400 for a field that no other protocol can express. It is thrown while a request is decoded for
 * translation: a model whose upstream speaks the client's protocol would take the field.
 * @param at path in the client's body
 */
export function untranslatable(at: string, detail = ''): GatewayError {
  const what = detail === '' ? '' : ` ${detail}`;
  return memberError(
    'unsupported_parameter',
    at,
    `'${at}'${what} is supported only by models whose upstream speaks your own protocol, which this one's does not.`,
  );
}

/**
 * Refuses what the upstream's protocol cannot express and the answer would be wrong without: settings that it lacks,
 * and tools that only another vendor can run, unless the target leaves these out.
 * @param lacked the settings, in the order in which they are checked
 * @throws {GatewayError} of status 400, naming the first of them
 */
export function refuseUnsupported(
  request: ConversationRequest,
  target: Pick<TargetOptions, 'hostedTools'>,
  to: TextProtocolName,
  lacked: readonly ('candidates' | 'logprobs' | 'logitBias')[],
): void {
  for (const setting of lacked) {
    const detail = setting === 'candidates' ? 'with more than one answer' : '';
    if (isSetByClient(request, setting)) throw unsupportedSetting(request, setting, to, detail);
  }
  const [hosted] = request.hostedTools;
  if (hosted !== undefined && target.hostedTools === 'reject')
    throw unsupportedAt(hosted.at, to, ofType(hosted.type));
}
