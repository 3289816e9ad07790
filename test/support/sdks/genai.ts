import * as genai1 from 'genai1';
import * as genai2 from 'genai2';
import * as genai3 from 'genai3';
import type { DemoGateway } from '../gateway.js';
import { raisedAs } from './raised.js';
import { sdksOfRun } from './versions.js';

/** The common part of the SDK's versions, with the types of one of them. */
export type Client = genai2.GoogleGenAI;
type ApiError = InstanceType<typeof genai2.ApiError>;
export type Response = genai2.GenerateContentResponse;
export type Part = genai2.Part;
type SdkModule = typeof genai2;

export interface Sdk {
  /** Such as `genai 1`, for the names of tests. */
  readonly name: string;
  /** Error classes and the client class. */
  readonly module: SdkModule;
  /** An error inside a stream raises; version 1 returns it as an empty chunk. */
  readonly raisesMidStream: boolean;
}

/** The versions of the official SDK that must work, oldest first. */
export const sdks: readonly Sdk[] = sdksOfRun<Sdk>([
  { name: 'genai 1', module: genai1 as unknown as SdkModule, raisesMidStream: false },
  { name: 'genai 2', module: genai2, raisesMidStream: true },
  { name: 'genai 3', module: genai3 as unknown as SdkModule, raisesMidStream: true },
]);

/** Creates a client of the gateway, as a user would. */
export function createClient(
  { module: { GoogleGenAI } }: Sdk,
  gateway: Pick<DemoGateway, 'url'>,
  apiKey = 'sk-demo',
): Client {
  return new GoogleGenAI({ apiKey, httpOptions: { baseUrl: gateway.url } });
}

/** See `raisedAs`. */
export function raised(sdk: Sdk, call: PromiseLike<unknown>): Promise<ApiError> {
  return raisedAs(sdk.module.ApiError, call);
}

/** Returns the error object of the body, since the SDK's message is the whole body. */
export function bodyOf(error: ApiError): { code?: number; message?: string; status?: string } {
  const body = JSON.parse(error.message) as { error?: object };
  return body.error ?? {};
}

/** Returns the texts of an answer's first candidate, without thoughts. */
export function textOf(responses: readonly Response[]): string {
  return responses
    .flatMap((response) => response.candidates?.[0]?.content?.parts ?? [])
    .map((part) => (part.thought === true ? '' : (part.text ?? '')))
    .join('');
}
