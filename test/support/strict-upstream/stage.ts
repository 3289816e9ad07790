import type { Test } from 'tap';
import type { TextProtocolName } from '../../../src/conversation/request.js';
import { keptIn } from '../conversations.js';
import { type RunningGateway, startGateway } from '../gateway.js';
import { temporaryFolder } from '../temporary-folder.js';
import { textProtocols } from '../translated.js';
import { type StrictUpstream, startStrictUpstream } from './server.js';

export interface StrictStage extends RunningGateway {
  readonly upstream: StrictUpstream;
}

/**
 * The kind of an upstream that is called in a protocol, the path of its base URL, and the further settings of its
 * targets.
 */
const upstreams: Readonly<Record<TextProtocolName, readonly [kind: string, path: string, target: object]>> = {
  chat: ['chat', '/v1', {}],
  responses: ['chat', '/v1', { responses: 'only' }],
  messages: ['messages', '/v1', {}],
  generateContent: ['generateContent', '/v1beta', {}],
};

/**
 * Starts a gateway that keeps conversations, with models that are offered in all text protocols and served by a
 * strict upstream that is called in one. Both end with the test.
 * @param models default: `m`
 */
export async function startStrictStage(
  t: Pick<Test, 'teardown'>,
  wire: TextProtocolName,
  { models = ['m'], target = {} }: { readonly models?: readonly string[]; readonly target?: object } = {},
): Promise<StrictStage> {
  const upstream = await startStrictUpstream(t);
  const [kind, path, own] = upstreams[wire];
  const gateway = await startGateway(t, {
    config: {
      ...keptIn(temporaryFolder(t)),
      upstreams: { strict: { kind, baseUrl: upstream.origin + path, apiKeys: ['upstream-key'] } },
      models: Object.fromEntries(
        models.map((model) => [
          model,
          { protocols: textProtocols, targets: [{ upstream: 'strict', model, ...own, ...target }] },
        ]),
      ),
    },
  });
  return { ...gateway, upstream };
}
