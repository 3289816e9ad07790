import { isDeepStrictEqual } from 'node:util';
import type { TextProtocolName } from '../../../src/conversation/request.js';
import type { Answer, Ask, Client } from './client.js';
import type { Received } from './received.js';

/** A model of the gateway under test, and the protocols that its upstream is called in. */
export interface MatrixModel {
  readonly name: string;
  wire(client: TextProtocolName): TextProtocolName;
}

/** The gateway with a simulated upstream of every protocol. */
export interface Matrix {
  /** URL of an image that has `pixel` as its bytes. */
  readonly imageUrl: string;
  send(client: Client, model: string, ask: Ask): Promise<Answer>;
  /** What the last answer's head says that its request lost. */
  leftOut(): readonly string[];
  /** What the simulator was sent last. */
  received(): Received;
}

/** One thing that must hold, unless it is among the losses; its name is what the losses call it. */
export interface Check {
  readonly name: string;
  readonly holds: boolean;
  /** What there was instead. */
  readonly found: unknown;
}

export interface Scene {
  readonly matrix: Matrix;
  readonly client: Client;
  readonly model: MatrixModel;
  readonly stream: boolean;
}

/** A call, and what must be true of its answer and of what the upstream was asked: the same for all clients. */
export interface Scenario {
  readonly name: string;
  /** Clients whose protocol can say it. */
  readonly clients?: readonly TextProtocolName[];
  ask(scene: Scene): Ask;
  checks(answer: Answer, scene: Scene, ask: Ask): readonly Check[] | Promise<readonly Check[]>;
}

/** Whether the gateway fetches images that are given by URL, as the upstream takes only their bytes. */
export function fetchesImages({ protocol }: Client, model: MatrixModel): boolean {
  return model.wire(protocol) === 'generateContent' && protocol !== 'generateContent';
}

/** Holds when both are deeply equal. */
export const check = (name: string, found: unknown, expected: unknown): Check => ({
  name,
  holds: isDeepStrictEqual(found, expected),
  found,
});
/** Holds as it is told. */
export const passes = (name: string, holds: boolean, found: unknown): Check => ({ name, holds, found });
