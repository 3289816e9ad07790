import type { UpstreamKind } from '../config/types.js';
import { compatClientFormat } from './client-formats/compat.js';
import { genericClientFormat } from './client-formats/generic.js';
import { vendorjClientFormat } from './client-formats/vendorj.js';
import { vendorkClientFormat } from './client-formats/vendork.js';
import type { UpstreamFormat, VideoClientFormat, VideoFormat } from './task.js';
import { compatUpstreamFormat } from './upstream-formats/compat.js';
import { genericUpstreamFormat } from './upstream-formats/generic.js';
import { vendorjUpstreamFormat } from './upstream-formats/vendorj.js';
import { vendorkUpstreamFormat } from './upstream-formats/vendork.js';

/** The upstream formats by name. */
export const upstreamFormats: Readonly<Record<VideoFormat, UpstreamFormat>> = {
  compat: compatUpstreamFormat,
  vendork: vendorkUpstreamFormat,
  vendorj: vendorjUpstreamFormat,
  generic: genericUpstreamFormat,
};

/** The client formats by name. */
export const clientFormats: Readonly<Record<VideoFormat, VideoClientFormat>> = {
  compat: compatClientFormat,
  vendork: vendorkClientFormat,
  vendorj: vendorjClientFormat,
  generic: genericClientFormat,
};

/** The video format of an upstream kind: `vendork`, `vendorj` and `generic` have their own, all others speak `compat`. */
export function upstreamFormatOf(kind: UpstreamKind): VideoFormat {
  return kind === 'vendork' || kind === 'vendorj' || kind === 'generic' ? kind : 'compat';
}
