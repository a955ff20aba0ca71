import { type DerElement, DerError, parseElement, parseElements, parseOid, parseSequence, TAG } from './reader.ts';

/** Parameters of RSASSA-PSS; the mask generation function is MGF1 with the same hash. */
export type PssParameters = {
  readonly hash: 'sha256' | 'sha384' | 'sha512';
  /** Bytes. */
  readonly saltLength: number;
};

/** An AlgorithmIdentifier of a signature (RFC 5280 section 4.1.1.2). */
export type SignatureAlgorithm = {
  /** Dotted object identifier. */
  readonly oid: string;
  /** Present for `RSASSA_PSS` with parameters that are supported. */
  readonly pss?: PssParameters;
};

/** id-RSASSA-PSS (RFC 8017 appendix A.2.3) */
export const RSASSA_PSS = '1.2.840.113549.1.1.10';
const MGF1 = '1.2.840.113549.1.1.8';
const HASHES: Readonly<Record<string, PssParameters['hash']>> = {
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
};
/** RFC 4055 section 3.1 */
const DEFAULT_SALT_LENGTH = 20;
/** Exceeds the salt length of a key of 4,096 bits. */
const MAX_SALT_LENGTH = 512;

/** @throws DerError for an invalid algorithm or more than one parameter. */
export function parseSignatureAlgorithm({ content }: DerElement): SignatureAlgorithm {
  const [type, parameters, ...more] = parseElements(content, 3);
  if (type?.tag !== TAG.oid || more.length > 0) throw new DerError('algorithm');
  const oid = parseOid(type.content);
  const pss = oid === RSASSA_PSS ? parsePss(parameters) : undefined;
  return { oid, ...(pss && { pss }) };
}

/** @returns undefined for SHA-1, the default, and for all other unsupported parameters. */
function parsePss(parameters: DerElement | undefined): PssParameters | undefined {
  if (parameters?.tag !== TAG.sequence) return undefined;
  const fields = new Map(parseElements(parameters.content, 4).map(({ tag, content }) => [tag, content]));
  const [hash, generator, salt, trailer] = [0xa0, 0xa1, 0xa2, 0xa3].map((tag) => fields.get(tag));
  if (hash === undefined || generator === undefined) return undefined;
  const [mask, maskHash] = parseSequence(generator, 2);
  if (mask === undefined || maskHash === undefined || parseOid(mask.content) !== MGF1) return undefined;
  const name = parseHash(parseElement(hash, TAG.sequence));
  if (name === undefined || parseHash(maskHash) !== name) return undefined;
  const saltLength = salt === undefined ? DEFAULT_SALT_LENGTH : parseInteger(salt);
  // RFC 4055 section 3.1: the trailer field is 1.
  if (saltLength > MAX_SALT_LENGTH || (trailer !== undefined && parseInteger(trailer) !== 1)) return undefined;
  return { hash: name, saltLength };
}

function parseHash({ content }: DerElement): PssParameters['hash'] | undefined {
  const [oid] = parseElements(content, 2);
  return oid === undefined ? undefined : HASHES[parseOid(oid.content)];
}

function parseInteger(der: Buffer): number {
  const { content } = parseElement(der, TAG.integer);
  if (content.length === 0 || content.length > 4) throw new DerError('number');
  const value = content.readIntBE(0, content.length);
  if (value < 0) throw new DerError('number');
  return value;
}
