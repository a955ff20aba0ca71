import { constants, type KeyObject, verify } from 'node:crypto';

const MORE = 'http://www.w3.org/2001/04/xmldsig-more#';
const PSS = 'http://www.w3.org/2007/05/xmldsig-more#';

type Algorithm = { readonly key: 'rsa' | 'ec'; readonly hash: string; readonly padding?: number };

/** Accepted signature methods (ETSI TS 119 312): none with SHA-1, and none with a shared secret. */
const ALGORITHMS: Readonly<Record<string, Algorithm>> = {
  ...Object.fromEntries(
    ['256', '384', '512'].flatMap((bits): [string, Algorithm][] => [
      [`${MORE}rsa-sha${bits}`, { key: 'rsa', hash: `sha${bits}` }],
      [`${MORE}ecdsa-sha${bits}`, { key: 'ec', hash: `sha${bits}` }],
      [`${PSS}sha${bits}-rsa-MGF1`, { key: 'rsa', hash: `sha${bits}`, padding: constants.RSA_PKCS1_PSS_PADDING }],
    ]),
  ),
};

export const SIGNATURE_METHODS: readonly string[] = Object.keys(ALGORITHMS);

/**
 * @param method a URI of `SIGNATURE_METHODS`; other methods, and keys of another kind, verify nothing.
 * @param signed canonical form of SignedInfo.
 */
export function verifySignatureValue(method: string, key: KeyObject, signed: string, value: Buffer): boolean {
  const algorithm = Object.hasOwn(ALGORITHMS, method) ? ALGORITHMS[method] : undefined;
  if (algorithm === undefined || key.asymmetricKeyType !== algorithm.key) return false;
  const { hash, padding } = algorithm;
  const options = padding === undefined ? {} : { padding, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
  // XML Signature section 6.4.3: r and s are concatenated.
  return verify(hash, Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363', ...options }, value);
}
