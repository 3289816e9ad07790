import type { UpstreamKind } from '../config/types.js';
import { compatFace } from './faces/compat.js';
import { genericFace } from './faces/generic.js';
import { vendorjFace } from './faces/vendorj.js';
import { vendorkFace } from './faces/vendork.js';
import type { VideoFace, VideoFormat, VideoWire } from './task.js';
import { compatWire } from './wires/compat.js';
import { genericWire } from './wires/generic.js';
import { vendorjWire } from './wires/vendorj.js';
import { vendorkWire } from './wires/vendork.js';

/** How upstreams of each format are asked. */
export const videoWires: Readonly<Record<VideoFormat, VideoWire>> = {
  compat: compatWire,
  vendork: vendorkWire,
  vendorj: vendorjWire,
  generic: genericWire,
};

/** How clients of each format read tasks. */
export const videoFaces: Readonly<Record<VideoFormat, VideoFace>> = {
  compat: compatFace,
  vendork: vendorkFace,
  vendorj: vendorjFace,
  generic: genericFace,
};

/** The format in which an upstream is asked: its own where it is of a vendor, else the chat family's. */
export function wireOfKind(kind: UpstreamKind): VideoFormat {
  return kind === 'vendork' || kind === 'vendorj' || kind === 'generic' ? kind : 'compat';
}
