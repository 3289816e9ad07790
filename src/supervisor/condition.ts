/** Something that others wait for. */
export interface Conditions {
  /** Something has changed that a condition may look at. */
  changed(): void;
  /** @returns whether the condition came true, or false when it did not within `ms` */
  until(condition: () => boolean, ms: number): Promise<boolean>;
}

/** Lets conditions be waited for that are looked at whenever something changes. */
export function createConditions(): Conditions {
  const looks = new Set<() => void>();
  return {
    changed() {
      for (const look of [...looks]) look();
    },
    until(condition, ms) {
      if (condition()) return Promise.resolve(true);
      return new Promise((resolve) => {
        const settle = (): void => {
          clearTimeout(timer);
          looks.delete(look);
          resolve(condition());
        };
        const look = (): void => {
          if (condition()) settle();
        };
        const timer = setTimeout(settle, ms);
        looks.add(look);
      });
    },
  };
}
