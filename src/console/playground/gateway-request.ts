import type { JsonObject } from './json.js';

/** A request to the gateway: what the relay is given, and what the code samples write. */
export interface GatewayRequest {
  readonly method: 'GET' | 'POST';
  /** With its query. */
  readonly path: string;
  /** Beside the credential and the content type. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: JsonObject | null;
}

export function post(
  path: string,
  body: JsonObject,
  headers: GatewayRequest['headers'] = {},
): GatewayRequest {
  return { method: 'POST', path, headers, body };
}

/**
 * Path of a method of generateContent.
 * @param method with its query
 */
export function generateContentPath(model: string, method: string): string {
  // The names of some models have a slash, which SDKs leave as it is.
  return `/v1beta/models/${encodeURIComponent(model).replaceAll('%2F', '/')}:${method}`;
}

export function get(path: string): GatewayRequest {
  return { method: 'GET', path, headers: {}, body: null };
}
