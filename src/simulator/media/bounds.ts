/** The value, when it is a whole number within the bounds. Throws a RangeError that names it else. */
export function whole(name: string, value: number, least: number, most: number): number {
  if (!Number.isInteger(value)) {
    throw new RangeError(`${name} must be a whole number, not ${value}`);
  }
  return within(name, value, least, most);
}

/** The value, when it is within the bounds. Throws a RangeError that names it else. */
export function within(name: string, value: number, least: number, most: number): number {
  if (!(value >= least && value <= most)) {
    throw new RangeError(`${name} must be ${least} to ${most}, not ${value}`);
  }
  return value;
}
