/** Runs a decoder with one input. Throws a `Violation` when an invariant is broken. */
export type Decode = (input: Buffer) => unknown;

/** One decoder, or several in sequence. */
export type Target = {
  /** Also the name of its folder in `corpus/` and `crashes/`. */
  readonly name: string;
  /** True if the error is an expected rejection. */
  readonly expected: (error: unknown) => boolean;
  /** Valid inputs, in addition to those in `corpus/`. */
  readonly seeds: readonly (Buffer | string)[];
  /** Tokens of the format for the mutator, which changes single bytes otherwise. */
  readonly dictionary: readonly (Buffer | string)[];
  readonly decode: Decode;
  /** Longest input in bytes, 64 KiB by default. */
  readonly maxLength?: number;
};

/** A decoder accepted an invalid input, or decoded another value. */
export class Violation extends Error {}

/** @throws Violation unless `condition` is true. */
export function ensure(condition: boolean, requirement: string): asserts condition {
  if (!condition) throw new Violation(requirement);
}

/** For decoders that never throw. */
export const neverExpected = () => false;

/** Failures of these classes. */
// biome-ignore lint/suspicious/noExplicitAny: constructors of every shape
export const isInstanceOfAny = (...classes: readonly (abstract new (...args: any[]) => Error)[]) => {
  return (error: unknown) => classes.some((errorClass) => error instanceof errorClass);
};
