import * as openai4 from 'openai4';
import * as parser4 from 'openai4/lib/parser';
import * as openai6 from 'openai6';
import * as parser6 from 'openai6/lib/parser';
import * as openai7 from 'openai7';
import * as parser7 from 'openai7/lib/parser';
import type { DemoGateway } from '../gateway.js';
import { raisedAs } from './raised.js';
import { sdksOfRun } from './versions.js';

/** The common part of the SDK's versions, with the types of one of them. */
export type Client = openai6.OpenAI;
type ApiError = InstanceType<typeof openai6.APIError>;
export type Chunk = openai6.OpenAI.ChatCompletionChunk;
type SdkModule = typeof openai6;
type MakeParseable = typeof parser6.makeParseableResponseFormat;

export interface Sdk {
  /** Such as `openai 6`, for the names of tests. */
  readonly name: string;
  /** Error classes and the client class. */
  readonly module: SdkModule;
  readonly makeParseableResponseFormat: MakeParseable;
}

/** The versions of the official SDK that must work, oldest first. */
export const sdks: readonly Sdk[] = sdksOfRun<Sdk>([
  {
    name: 'openai 4',
    module: openai4 as unknown as SdkModule,
    makeParseableResponseFormat: parser4.makeParseableResponseFormat as unknown as MakeParseable,
  },
  {
    name: 'openai 6',
    module: openai6,
    makeParseableResponseFormat: parser6.makeParseableResponseFormat,
  },
  {
    name: 'openai 7',
    module: openai7 as unknown as SdkModule,
    makeParseableResponseFormat: parser7.makeParseableResponseFormat as unknown as MakeParseable,
  },
]);

interface ClientOptions {
  /** Default: `sk-demo`. */
  readonly apiKey?: string;
  /** Default: 0. */
  readonly maxRetries?: number;
  /** Default: that of the gateway. */
  readonly baseURL?: string;
  readonly fetch?: typeof fetch;
}

/** Creates a client of the gateway, as a user would. */
export function createClient(
  { module: { OpenAI } }: Sdk,
  gateway: Pick<DemoGateway, 'url'>,
  options: ClientOptions = {},
): Client {
  return new OpenAI({ apiKey: 'sk-demo', maxRetries: 0, baseURL: `${gateway.url}/v1`, ...options });
}

/** Returns the object with `parse`, `stream` and `runTools`: version 4 has them under `beta`. */
export function helpers(client: Client): Client['chat']['completions'] {
  const { beta } = client as unknown as { beta?: { chat?: Client['chat'] } };
  return beta?.chat?.completions ?? client.chat.completions;
}

/** See `raisedAs`. */
export function raised(sdk: Sdk, call: PromiseLike<unknown>): Promise<ApiError> {
  return raisedAs(sdk.module.APIError, call);
}

/** Returns the request id of an error, whose name differs in version 4. */
export function requestIdOf(error: ApiError): string {
  return error.requestID ?? (error as { request_id?: string }).request_id ?? '';
}

/** Reads a stream to its end. */
export async function collect<T>(stream: AsyncIterable<T>, into: T[] = []): Promise<readonly T[]> {
  for await (const item of stream) into.push(item);
  return into;
}
