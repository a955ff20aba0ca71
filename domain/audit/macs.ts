import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';

export type MacVerdict = 'genuine' | 'forged' | 'unknown_key';

/** Codes that nobody without a key can make for another text: `<keyId>.<base64url(HMAC-SHA-256)>`. */
export type Macs = {
  make(text: string): string;
  /** @returns `unknown_key` for a code under a key that is not (any more) ours. */
  check(text: string, code: string): MacVerdict;
  /** The same without keys that count for the past alone. */
  checkPresent(text: string, code: string): MacVerdict;
};

export type MacKey = { readonly id: string; readonly key: KeyObject };

/**
 * @param keys the first makes, all verify.
 * @param former of secrets that are not listed any more: what they made in their time stays verifiable.
 */
export function hmacs(keys: readonly [MacKey, ...MacKey[]], former: readonly MacKey[] = []): Macs {
  const digest = (key: KeyObject, text: string) => createHmac('sha256', key).update(text).digest('base64url');
  const checkBy = (all: readonly MacKey[], text: string, code: string): MacVerdict => {
    const known = all.find(({ id }) => code.startsWith(`${id}.`));
    if (known === undefined) return 'unknown_key';
    const expected = Buffer.from(`${known.id}.${digest(known.key, text)}`);
    const given = Buffer.from(code);
    return given.length === expected.length && timingSafeEqual(given, expected) ? 'genuine' : 'forged';
  };
  const all = [...keys, ...former];
  return {
    make: (text) => `${keys[0].id}.${digest(keys[0].key, text)}`,
    check: (text, code) => checkBy(all, text, code),
    checkPresent: (text, code) => checkBy(keys, text, code),
  };
}
