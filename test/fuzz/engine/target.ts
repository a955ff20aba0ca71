/** What a decoder does with one input. It throws a `Violation` where it did something that it must never do. */
export type Decode = (input: Buffer) => unknown;

/** One decoder, or several that follow each other. */
export type Target = {
  /** Also the name of its folder in `corpus/` and `crashes/`. */
  readonly name: string;
  /** Whether the decoder promises to throw this. */
  readonly expected: (error: unknown) => boolean;
  /** Valid inputs; what was kept in `corpus/` joins them. */
  readonly seeds: readonly (Buffer | string)[];
  /** Pieces of the format that no change of single bytes would come upon. */
  readonly dictionary: readonly (Buffer | string)[];
  readonly decode: Decode;
  /** Longest input in bytes, 64 KiB unless told. */
  readonly maxLength?: number;
};

/** A decoder took what it must not take, or made something else of it. */
export class Violation extends Error {}

/** @throws Violation unless `holds`. */
export function ensure(condition: boolean, requirement: string): asserts condition {
  if (!condition) throw new Violation(requirement);
}

/** For decoders that answer and never throw. */
export const neverExpected = () => false;

/** Failures of these classes. */
// biome-ignore lint/suspicious/noExplicitAny: constructors of every shape
export const isInstanceOfAny = (...classes: readonly (abstract new (...args: any[]) => Error)[]) => {
  return (error: unknown) => classes.some((errorClass) => error instanceof errorClass);
};
