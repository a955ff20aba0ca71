import { constants, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { readElements, readSequence } from '../../domain/formats/der/reader.ts';
import { der, type Signing } from './crl-maker.ts';
import { type CertificateOptions, type Certified, certify } from './test-certificates.ts';

const hex = (text: string) => Buffer.from(text, 'hex');
const HASH_OIDS = {
  sha1: '06052b0e03021a',
  sha256: '0609608648016503040201',
  sha512: '0609608648016503040203',
};
type Hash = keyof typeof HASH_OIDS;

/** A certificate with an RSA key, and that key. */
export type RsaCertified = Certified & { readonly rsa: KeyObject };

export const pkcs1 = (privateKey: KeyObject): Signing => ({
  algorithm: der(0x30, hex('06092a864886f70d01010b'), hex('0500')),
  sign: (data) => sign('sha256', data, privateKey),
});

/** RSASSA-PSS (RFC 4055 section 3.1). @param mask hash of MGF1. */
export function pss(
  key: KeyObject,
  { hash = 'sha256', mask = hash, saltLength = 32 }: { hash?: Hash; mask?: Hash; saltLength?: number } = {},
): Signing {
  const hashOf = (name: Hash) => der(0x30, hex(HASH_OIDS[name]), hex('0500'));
  const generator = der(0x30, hex('06092a864886f70d010108'), hashOf(mask));
  const parameters = der(
    0x30,
    der(0xa0, hashOf(hash)),
    der(0xa1, generator),
    der(0xa2, der(0x02, Buffer.from([saltLength]))),
  );
  return {
    algorithm: der(0x30, hex('06092a864886f70d01010a'), parameters),
    sign: (data) => sign(hash, data, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength }),
  };
}

/** The certificate of `options`, for an RSA key if wanted, signed as `signing` says. */
export async function certifyRsa(
  options: CertificateOptions,
  {
    rsa,
    signing,
  }: { readonly rsa?: ReturnType<typeof rsaPair>; readonly signing?: (self: KeyObject) => Signing },
): Promise<RsaCertified> {
  const made = await certify(options);
  const [toBeSigned] = readSequence(Buffer.from(made.certificate, 'base64'));
  if (toBeSigned === undefined) throw new Error('no certificate');
  const fields = readElements(toBeSigned.content).map(({ whole }) => whole);
  const { privateKey } = rsa ?? made;
  const by = (signing ?? pkcs1)(privateKey);
  fields[2] = by.algorithm;
  if (rsa !== undefined) fields[6] = rsa.publicKey.export({ format: 'der', type: 'spki' });
  const content = der(0x30, ...fields);
  const whole = der(0x30, content, by.algorithm, der(0x03, Buffer.from([0]), by.sign(content)));
  return { ...made, certificate: whole.toString('base64'), rsa: privateKey };
}

export const rsaPair = (modulusLength = 2048) => generateKeyPairSync('rsa', { modulusLength });
/** An RSA key that is for RSASSA-PSS alone. */
export const pssPair = () => generateKeyPairSync('rsa-pss', { modulusLength: 2048 });
