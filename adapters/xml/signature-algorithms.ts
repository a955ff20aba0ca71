import { constants, createPublicKey, verify } from 'node:crypto';

const MORE = 'http://www.w3.org/2001/04/xmldsig-more#';
const PSS = 'http://www.w3.org/2007/05/xmldsig-more#';

type Algorithm = { readonly key: 'rsa' | 'ec'; readonly hash: string; readonly padding?: number };

/** What a signature may be made with (ETSI TS 119 312): nothing with SHA-1, and nothing with a shared secret. */
const ALGORITHMS: Readonly<Record<string, Algorithm>> = {
  ...Object.fromEntries(
    ['256', '384', '512'].flatMap((bits): [string, Algorithm][] => [
      [`${MORE}rsa-sha${bits}`, { key: 'rsa', hash: `sha${bits}` }],
      [`${MORE}ecdsa-sha${bits}`, { key: 'ec', hash: `sha${bits}` }],
      [
        `${PSS}sha${bits}-rsa-MGF1`,
        { key: 'rsa', hash: `sha${bits}`, padding: constants.RSA_PKCS1_PSS_PADDING },
      ],
    ]),
  ),
};

export const SIGNATURE_METHODS: readonly string[] = Object.keys(ALGORITHMS);

/** The form in which `xml-crypto` wants to be given them; it makes one for each signature. */
export const SIGNATURE_ALGORITHMS = Object.fromEntries(
  Object.entries(ALGORITHMS).map(([name, algorithm]) => [name, verifierOf(name, algorithm)]),
);

function verifierOf(name: string, { key: kind, hash, padding }: Algorithm) {
  return class {
    getAlgorithmName = () => name;
    getSignature = (): never => {
      throw new Error('nothing is signed here');
    };
    verifySignature = (signed: string, pem: unknown, value: string): boolean => {
      const key = createPublicKey(String(pem));
      if (key.asymmetricKeyType !== kind) return false;
      const options = padding === undefined ? {} : { padding, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
      // XML Signature section 6.4.3: r and s, one after the other
      const how = { key, dsaEncoding: 'ieee-p1363' as const, ...options };
      return verify(hash, Buffer.from(signed, 'utf8'), how, Buffer.from(value, 'base64'));
    };
  };
}
