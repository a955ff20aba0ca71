import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';

export type MacVerdict = 'genuine' | 'forged' | 'unknown_key';

/** Codes that nobody without a key can make for another text: `<keyId>.<base64url(HMAC-SHA-256)>`. */
export type Macs = {
  make(text: string): string;
  /** @returns `unknown_key` for a code under a key that is not (any more) ours. */
  check(text: string, code: string): MacVerdict;
};

export type MacKey = { readonly id: string; readonly key: KeyObject };

/** @param keys the first makes, all verify. */
export function hmacs(keys: readonly [MacKey, ...MacKey[]]): Macs {
  const digest = (key: KeyObject, text: string) => createHmac('sha256', key).update(text).digest('base64url');
  return {
    make: (text) => `${keys[0].id}.${digest(keys[0].key, text)}`,
    check(text, code) {
      const known = keys.find(({ id }) => code.startsWith(`${id}.`));
      if (known === undefined) return 'unknown_key';
      const expected = Buffer.from(`${known.id}.${digest(known.key, text)}`);
      const given = Buffer.from(code);
      return given.length === expected.length && timingSafeEqual(given, expected) ? 'genuine' : 'forged';
    },
  };
}
