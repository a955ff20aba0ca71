import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';

export type MacVerdict = 'genuine' | 'forged' | 'unknown_key';

/** MACs that cannot be forged without a key: `<keyId>.<base64url(HMAC-SHA-256)>`. */
export type Macs = {
  make(text: string): string;
  /** @returns `unknown_key` for a MAC under a key that is not configured (any more). */
  check(text: string, code: string): MacVerdict;
  /** The same without keys of removed secrets. */
  checkPresent(text: string, code: string): MacVerdict;
};

export type MacKey = { readonly id: string; readonly key: KeyObject };

/**
 * @param keys the first one creates, all verify.
 * @param previousKeys of removed secrets, which only verify.
 */
export function hmacKeyring(keys: readonly [MacKey, ...MacKey[]], previousKeys: readonly MacKey[] = []): Macs {
  const digest = (key: KeyObject, text: string) => createHmac('sha256', key).update(text).digest('base64url');
  const verifyWith = (candidates: readonly MacKey[], text: string, code: string): MacVerdict => {
    const macKey = candidates.find(({ id }) => code.startsWith(`${id}.`));
    if (macKey === undefined) return 'unknown_key';
    const expected = Buffer.from(`${macKey.id}.${digest(macKey.key, text)}`);
    const actual = Buffer.from(code);
    return actual.length === expected.length && timingSafeEqual(actual, expected) ? 'genuine' : 'forged';
  };
  const allKeys = [...keys, ...previousKeys];
  return {
    make: (text) => `${keys[0].id}.${digest(keys[0].key, text)}`,
    check: (text, code) => verifyWith(allKeys, text, code),
    checkPresent: (text, code) => verifyWith(keys, text, code),
  };
}
