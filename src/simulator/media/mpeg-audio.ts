/** Layer III bit rates in kbit/s by their index. */
const ratesOfMpeg1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const ratesOfMpeg2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const samplingRates = [44_100, 48_000, 32_000];
const mpeg1 = 3;
const reservedVersion = 1;
const layer3 = 1;
const farthestStart = 64 * 1024;
const flagOfFrames = 1;

interface Frame {
  readonly bytes: number;
  readonly samples: number;
  readonly samplingRate: number;
  readonly bitsPerSecond: number;
  /** Where an Info or Xing header would be, from the frame's start. */
  readonly information: number;
}

/**
 * Seconds of MPEG Layer III audio that begins at a position or at most 64 KiB after it: as its Info or Xing header
 * tells, else as its bytes last at the bit rate of its first frame. Null where there is no frame.
 */
export function layer3Seconds(bytes: Buffer, from: number): number | null {
  for (let at = from; at + 4 <= bytes.length && at <= from + farthestStart; at++) {
    const frame = frameAt(bytes, at);
    if (frame !== null && (at === from || frameAt(bytes, at + frame.bytes) !== null)) {
      const frames = framesToldAt(bytes, at + frame.information);
      return frames === null
        ? (8 * (bytes.length - at)) / frame.bitsPerSecond
        : (frames * frame.samples) / frame.samplingRate;
    }
  }
  return null;
}

/** Whether a Layer III frame begins here. */
export function isLayer3(bytes: Buffer, at: number): boolean {
  return frameAt(bytes, at) !== null;
}

function frameAt(bytes: Buffer, at: number): Frame | null {
  if (at + 4 > bytes.length) {
    return null;
  }
  const header = bytes.readUInt32BE(at);
  const version = (header >>> 19) & 3;
  const layer = (header >>> 17) & 3;
  const rates = version === mpeg1 ? ratesOfMpeg1 : ratesOfMpeg2;
  const kilobits = rates[(header >>> 12) & 0xf] ?? 0;
  const divisor = version === mpeg1 ? 1 : version === 2 ? 2 : 4;
  const samplingRate = (samplingRates[(header >>> 10) & 3] ?? 0) / divisor;
  if (
    header >>> 21 !== 0x7ff ||
    version === reservedVersion ||
    layer !== layer3 ||
    !kilobits ||
    !samplingRate
  ) {
    return null;
  }
  const isMono = ((header >>> 6) & 3) === 3;
  const samples = version === mpeg1 ? 1152 : 576;
  const padding = (header >>> 9) & 1;
  const side = version === mpeg1 ? (isMono ? 17 : 32) : isMono ? 9 : 17;
  return {
    bytes: Math.floor(((samples / 8) * 1000 * kilobits) / samplingRate) + padding,
    samples,
    samplingRate,
    bitsPerSecond: 1000 * kilobits,
    information: 4 + side,
  };
}

function framesToldAt(bytes: Buffer, at: number): number | null {
  if (at + 12 > bytes.length || !['Info', 'Xing'].includes(bytes.toString('latin1', at, at + 4))) {
    return null;
  }
  return bytes.readUInt32BE(at + 4) & flagOfFrames ? bytes.readUInt32BE(at + 8) : null;
}
