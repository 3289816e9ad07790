/** Returns a whole number within the bounds. @throws RangeError with its name for any other value */
export function whole(name: string, value: number, least: number, most: number): number {
  if (!Number.isInteger(value)) {
    throw new RangeError(`${name} must be a whole number, not ${value}`);
  }
  return within(name, value, least, most);
}

/** Returns a number within the bounds. @throws RangeError with its name for any other value */
export function within(name: string, value: number, least: number, most: number): number {
  if (!(value >= least && value <= most)) {
    throw new RangeError(`${name} must be ${least} to ${most}, not ${value}`);
  }
  return value;
}
