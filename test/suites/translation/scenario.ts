import { isDeepStrictEqual } from 'node:util';
import type { TextProtocolName } from '../../../src/conversation/request.js';
import type { Answer, Ask, Client } from './client.js';
import type { Received } from './received.js';

/** A model of the gateway under test, and the protocols of its upstream. */
export interface MatrixModel {
  readonly name: string;
  wire(client: TextProtocolName): TextProtocolName;
}

/** The gateway with a simulated upstream of every protocol. */
export interface Matrix {
  /** URL of an image whose bytes are `pixel`. */
  readonly imageUrl: string;
  send(client: Client, model: string, ask: Ask): Promise<Answer>;
  /** The losses that the last answer's head names. */
  leftOut(): readonly string[];
  /** The last request to the simulator. */
  received(): Received;
}

/** Something that must hold, unless it is listed as a loss under its name. */
export interface Check {
  readonly name: string;
  readonly holds: boolean;
  /** The actual value. */
  readonly found: unknown;
}

export interface Scene {
  readonly matrix: Matrix;
  readonly client: Client;
  readonly model: MatrixModel;
  readonly stream: boolean;
}

/** A call, and what must hold for its answer and for the upstream's request: the same for all clients. */
export interface Scenario {
  readonly name: string;
  /** Clients whose protocol can express it. */
  readonly clients?: readonly TextProtocolName[];
  ask(scene: Scene): Ask;
  checks(answer: Answer, scene: Scene, ask: Ask): readonly Check[] | Promise<readonly Check[]>;
}

/** Whether the gateway fetches images that are given by URL, since the upstream accepts only their bytes. */
export function fetchesImages({ protocol }: Client, model: MatrixModel): boolean {
  return model.wire(protocol) === 'generateContent' && protocol !== 'generateContent';
}

/** Holds if both are deeply equal. */
export const check = (name: string, found: unknown, expected: unknown): Check => ({
  name,
  holds: isDeepStrictEqual(found, expected),
  found,
});
/** Holds if the given value is true. */
export const passes = (name: string, holds: boolean, found: unknown): Check => ({ name, holds, found });
