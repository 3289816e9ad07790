import { GatewayError } from '../errors.js';
import type { GatewayCall } from './gateway-call.js';

const methods = ['GET', 'POST', 'DELETE'] as const;
const members = new Set(['method', 'path', 'key', 'headers', 'body']);
const pathForm = /^\/[\x21-\x7e]*$/;
const keyForm = /^[\x21-\x7e]{1,512}$/;
const headerName = /^[\w!#$%&'*+.^`|~-]+$/;
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/;

/** What the relay says itself, and what belongs to one connection alone. */
const ownHeaders = new Set([
  'authorization',
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Reads what the playground is to send to the gateway.
 * @throws {GatewayError} of status 400, with the member at fault
 */
export function readPlaygroundCall(source: Readonly<Record<string, unknown>>): GatewayCall {
  const unknown = Object.keys(source).find((name) => !members.has(name));
  if (unknown !== undefined) throw wrong(unknown, 'is not known here');
  const { path, key, body = null } = source;
  const method = methods.find((each) => each === source.method);
  if (method === undefined) throw wrong('method', `must be one of ${methods.join(', ')}`);
  if (typeof path !== 'string' || !pathForm.test(path)) {
    throw wrong('path', 'must begin with a slash and have no spaces');
  }
  if (typeof key !== 'string' || !keyForm.test(key)) throw wrong('key', 'must be a key of the gateway');
  if (body !== null && typeof body !== 'string') throw wrong('body', 'must be a text or null');
  const headers = readHeaders(source.headers ?? {});
  headers.authorization = `Bearer ${key}`;
  if (body !== null) headers['content-type'] ??= 'application/json';
  return { method, path, headers, body };
}

function readHeaders(source: unknown): Record<string, string> {
  if (typeof source !== 'object' || source === null || Array.isArray(source)) {
    throw wrong('headers', 'must be an object');
  }
  const headers: Record<string, string> = {};
  for (const [given, value] of Object.entries(source)) {
    const name = given.toLowerCase();
    if (!headerName.test(name)) throw wrong('headers', 'have a name that no header can have');
    if (ownHeaders.has(name)) throw wrong(`headers.${name}`, 'is set by the relay');
    if (typeof value !== 'string' || !headerValue.test(value)) {
      throw wrong(`headers.${name}`, 'must be a valid header value');
    }
    headers[name] = value;
  }
  return headers;
}

function wrong(member: string, message: string): GatewayError {
  return new GatewayError('invalid_value', `${member} ${message}.`, { param: member });
}
