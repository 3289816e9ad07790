import type { UpstreamKind } from '../config/types.js';
import { compatFace } from './faces/compat.js';
import { genericFace } from './faces/generic.js';
import { vendorjFace } from './faces/vendorj.js';
import { vendorkFace } from './faces/vendork.js';
import type { UpstreamFormat, VideoFace, VideoFormat } from './task.js';
import { compatUpstreamFormat } from './upstream-formats/compat.js';
import { genericUpstreamFormat } from './upstream-formats/generic.js';
import { vendorjUpstreamFormat } from './upstream-formats/vendorj.js';
import { vendorkUpstreamFormat } from './upstream-formats/vendork.js';

/** How upstreams of each format are asked. */
export const upstreamFormats: Readonly<Record<VideoFormat, UpstreamFormat>> = {
  compat: compatUpstreamFormat,
  vendork: vendorkUpstreamFormat,
  vendorj: vendorjUpstreamFormat,
  generic: genericUpstreamFormat,
};

/** How clients of each format read tasks. */
export const videoFaces: Readonly<Record<VideoFormat, VideoFace>> = {
  compat: compatFace,
  vendork: vendorkFace,
  vendorj: vendorjFace,
  generic: genericFace,
};

/** The format in which an upstream is asked: its own where it is of a vendor, else the chat family's. */
export function upstreamFormatOf(kind: UpstreamKind): VideoFormat {
  return kind === 'vendork' || kind === 'vendorj' || kind === 'generic' ? kind : 'compat';
}
