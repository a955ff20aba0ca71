import fc from 'fast-check';

/**
 * Every character that a text can have, as unit of `fc.string`. The unit `binary` is the same, but lists all of them
 * before the first text, which takes a second.
 */
export const anyCharacter = fc
  .oneof(fc.integer({ min: 0, max: 0xd7ff }), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((codePoint) => String.fromCodePoint(codePoint));
