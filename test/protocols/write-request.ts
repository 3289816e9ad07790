import type { TargetOptions, TextCodec } from '../../src/conversation/codec.js';
import { fitRequest } from '../../src/conversation/fit/fit.js';
import { LeftOut } from '../../src/conversation/left-out.js';
import type { ConversationRequest } from '../../src/conversation/request.js';

/**
 * @param leftOut is told what the body does not have of the request
 * @returns the body that an upstream gets for a request
 * @throws {GatewayError} of status 400 for what its protocol cannot say
 */
export function writeRequest(
  codec: TextCodec,
  request: ConversationRequest,
  target: TargetOptions,
  leftOut = new LeftOut(),
): string {
  const { request: fitted } = fitRequest(request, { rules: codec.rules, options: target, leftOut });
  return codec.encodeRequest(fitted, target, leftOut);
}
