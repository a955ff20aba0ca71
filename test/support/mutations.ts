/** A presentation that was made from a good one. */
export type Mutation = {
  /** What it was made from. */
  readonly base: string;
  /** What was done to it; mutations are counted by this. */
  readonly kind: string;
  readonly what: string;
  readonly text: string;
  /**
   * `same`: it has to be taken. `issuer`: the issuer signed something else, so whether it is taken depends on what it
   * says. `bad`: if it is taken, then for what the good one says and nothing else.
   */
  readonly nature: 'same' | 'issuer' | 'bad';
};

/** Numbers from 0 to below 1, the same ones for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** `count` places below `length`, spread over all of it, none twice. */
export function places(length: number, count: number, random: () => number): readonly number[] {
  const wanted = Math.min(length, count);
  return Array.from({ length: wanted }, (_, index) => {
    const from = Math.floor((index * length) / wanted);
    const until = Math.floor(((index + 1) * length) / wanted);
    return from + Math.floor(random() * (until - from));
  });
}

/** Copies with one bit turned. */
export function flips(
  bytes: Buffer,
  count: number,
  random: () => number,
): readonly { readonly what: string; readonly bytes: Buffer }[] {
  return places(bytes.length, count, random).map((at) => {
    const bit = Math.floor(random() * 8);
    const copy = Buffer.from(bytes);
    copy.writeUInt8(copy.readUInt8(at) ^ (1 << bit), at);
    return { what: `bit ${bit} of byte ${at} of ${bytes.length}`, bytes: copy };
  });
}

/** What is written in the place of a member: nothing, and values of every type. */
export const OTHER_VALUES: readonly (readonly [string, unknown])[] = [
  ['left out', undefined],
  ['null', null],
  ['true', true],
  ['zero', 0],
  ['a number', 7],
  ['a fraction', 0.5],
  ['empty text', ''],
  ['text', 'x'],
  ['an empty list', []],
  ['a list of text', ['x']],
  ['an empty object', {}],
];

/** The same presentation may come about in several ways; it is judged once, and a good one not at all. */
export function distinct(mutations: readonly Mutation[], good: readonly string[]): readonly Mutation[] {
  const byText = new Map(mutations.map((one) => [one.text, one]));
  for (const text of good) byText.delete(text);
  return [...byText.values()];
}
