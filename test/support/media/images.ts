import type { Test } from 'tap';
import type { Simulator } from '../../../src/simulator/server.js';
import { type RunningGateway, startGateway } from '../gateway.js';
import { simulate } from '../simulator.js';
import { type MediaOptions, mediaConfig } from './gateway.js';

/** How upstreams take requests for images. Each has its own model, with the same name. */
export const styles = ['openai', 'dashscope'] as const;

/** Starts a gateway with a model for each style of upstream, all of them the simulator. */
export async function startImages(
  t: Test,
  options: Partial<MediaOptions> = {},
): Promise<{ readonly gateway: RunningGateway; readonly simulator: Simulator }> {
  const simulator = await simulate(t);
  const origin = `http://127.0.0.1:${simulator.port}`;
  const gateway = await startGateway(t, {
    config: mediaConfig(t, {
      upstreams: { openai: { baseUrl: `${origin}/v1` }, dashscope: { baseUrl: `${origin}/api/v1` } },
      models: Object.fromEntries(
        styles.map((style) => [
          style,
          { protocols: ['images'], targets: [{ upstream: style, model: 'sim-image', images: style }] },
        ]),
      ),
      ...options,
    }),
  });
  return { gateway, simulator };
}

/** Makes a body of the form that has messages in `input`. */
export function inputBody(
  model: string,
  content: readonly object[],
  parameters?: object,
): Record<string, unknown> {
  return {
    model,
    input: { messages: [{ role: 'user', content }] },
    ...(parameters === undefined ? {} : { parameters }),
  };
}

/** Returns the size of a PNG. @throws Error if it is none */
export function pngSize(bytes: Buffer): { readonly width: number; readonly height: number } {
  if (bytes.toString('latin1', 0, 8) !== '\x89PNG\r\n\x1a\n') throw new Error('no PNG');
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

/** The first bytes of a PNG, by which it is recognised. */
export const png = Buffer.from('\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR and so on', 'latin1');
