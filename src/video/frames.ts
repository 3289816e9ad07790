/** The vendorj format counts the length of a video in frames: 24 a second and the first one, 121 for five seconds. */
export const framesPerSecond = 24;

/** The frames of a video of so many seconds. */
export function framesOf(seconds: number): number {
  return framesPerSecond * seconds + 1;
}
