import * as anthropic0 from 'anthropic0';
import * as anthropic1 from 'anthropic1';
import type { DemoGateway } from '../gateway.js';
import { raisedAs } from './raised.js';
import { sdksOfRun } from './versions.js';

/** The common part of the SDK's versions, with the types of one of them. */
export type Client = anthropic0.Anthropic;
type ApiError = InstanceType<typeof anthropic0.APIError>;
export type Message = anthropic0.Anthropic.Message;
export type MessageParam = anthropic0.Anthropic.MessageParam;
export type StreamEvent = anthropic0.Anthropic.RawMessageStreamEvent;
type SdkModule = typeof anthropic0;

export interface Sdk {
  /** Such as `anthropic 0`, for the names of tests. */
  readonly name: string;
  /** Error classes and the client class. */
  readonly module: SdkModule;
  /** The key is sent as a bearer token, and the beta client adds no query. */
  readonly bearer: boolean;
}

/** The versions of the official SDK that must work, oldest first. */
export const sdks: readonly Sdk[] = sdksOfRun<Sdk>([
  { name: 'anthropic 0', module: anthropic0, bearer: false },
  { name: 'anthropic 1', module: anthropic1 as unknown as SdkModule, bearer: true },
]);

interface ClientOptions {
  /** Default: `sk-demo`. */
  readonly apiKey?: string;
  /** Default: 0. */
  readonly maxRetries?: number;
  readonly fetch?: typeof fetch;
}

/** Creates a client of the gateway, as a user would. */
export function createClient(
  { module: { Anthropic } }: Sdk,
  gateway: Pick<DemoGateway, 'url'>,
  options: ClientOptions = {},
): Client {
  return new Anthropic({ apiKey: 'sk-demo', maxRetries: 0, baseURL: gateway.url, ...options });
}

/** See `raisedAs`. */
export function raised(sdk: Sdk, call: PromiseLike<unknown>): Promise<ApiError> {
  return raisedAs(sdk.module.APIError, call);
}

/** Returns the joined texts of a message. */
export function textOf({
  content,
}: {
  readonly content: readonly { type: string; text?: string }[];
}): string {
  return content.map((block) => (block.type === 'text' ? (block.text ?? '') : '')).join('');
}
