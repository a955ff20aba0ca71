import { type Extension, parseExtensionList } from './certificate.ts';
import { parsePointNames } from './distribution-point.ts';
import { type DerElement, DerError, parseElement, parseElements, parseSequence, TAG } from './reader.ts';
import { parseSignatureAlgorithm, type SignatureAlgorithm } from './signature-algorithm.ts';
import { parseTime } from './time.ts';

/** A certificate revocation list (RFC 5280 section 5); it is not trusted before its signature is verified. */
export type CertificateList = {
  /** The signed part with algorithm and signature. */
  readonly toBeSigned: Buffer;
  readonly algorithm: SignatureAlgorithm;
  readonly signature: Buffer;
  /** DER in hexadecimal, like the names of `Certificate`. */
  readonly issuer: string;
  readonly thisUpdate: Date;
  readonly nextUpdate: Date;
  /** base64url */
  readonly authorityKeyId?: string;
  /** Content of the INTEGER, hexadecimal. */
  readonly number?: string;
  /** The certificates of the issuer that the list covers; absent: all. */
  readonly scope?: ListScope;
  /** Content of `revokedCertificates`, for `RevokedEntries`. */
  readonly entries: Buffer;
};

export type ListScope = {
  /** Addresses of its distribution point; absent: all distribution points. */
  readonly points?: readonly string[];
  readonly only?: 'users' | 'authorities';
};

const EXTENSION = { number: '2.5.29.20', delta: '2.5.29.27', scope: '2.5.29.28', authorityKeyId: '2.5.29.35' } as const;
const PROCESSED: ReadonlySet<string> = new Set([EXTENSION.number, EXTENSION.scope, EXTENSION.authorityKeyId]);
/** Limit of elements in structures with few parts, because lists are parsed before their signature is verified. */
const MAX_PARTS = 20;
const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;
const EXTENSIONS = 0xa0;

/**
 * Parses a complete list of one issuer; its entries are parsed after its signature was verified.
 * @throws DerError for an unsupported list: delta lists, lists of several issuers or of some reasons only, critical extensions that are not
 * processed here, and lists without `nextUpdate`.
 */
export function parseCrl(der: Buffer): CertificateList {
  const [toBeSigned, algorithm, signature, ...more] = parseSequence(der, MAX_PARTS);
  if (toBeSigned?.tag !== TAG.sequence || algorithm === undefined || signature === undefined || more.length > 0) {
    throw new DerError('not a certificate revocation list');
  }
  const fields = parseElements(toBeSigned.content, MAX_PARTS);
  // RFC 5280 section 5.1.2.1: version 1 is omitted, and its lists have no extensions.
  const isSecond = fields[0]?.tag === TAG.integer;
  if (isSecond && !fields[0]?.content.equals(Buffer.from([1]))) throw new DerError('version');
  const [inner, issuer, begin, end, ...remainingFields] = fields.slice(isSecond ? 1 : 0);
  // RFC 5280 section 5.1.1.2: both must be the same.
  if (inner === undefined || !inner.encoded.equals(algorithm.encoded)) throw new DerError('algorithm');
  if (issuer?.tag !== TAG.sequence || begin === undefined) throw new DerError('issuer');
  const revoked = remainingFields[0]?.tag === TAG.sequence ? remainingFields.shift() : undefined;
  const extensions = isSecond && remainingFields[0]?.tag === EXTENSIONS ? remainingFields.shift() : undefined;
  if (remainingFields.length > 0) throw new DerError('unknown field');
  return {
    toBeSigned: toBeSigned.encoded,
    algorithm: parseSignatureAlgorithm(algorithm),
    signature: parseSignature(signature),
    issuer: issuer.encoded.toString('hex'),
    ...parseTimes(begin, end),
    ...parseListExtensions(parseExtensionList(extensions, MAX_PARTS)),
    entries: revoked?.content ?? Buffer.alloc(0),
  };
}

function parseSignature({ tag, content }: DerElement): Buffer {
  if (tag !== TAG.bitString || content[0] !== 0) throw new DerError('signature');
  return content.subarray(1);
}

/** RFC 5280 section 5.1.2.5: `nextUpdate` is required; a list without it would be valid forever. */
function parseTimes(begin: DerElement, end: DerElement | undefined) {
  if (end?.tag !== UTC_TIME && end?.tag !== GENERALIZED_TIME) throw new DerError('nextUpdate');
  const times = { thisUpdate: parseTime(begin), nextUpdate: parseTime(end) };
  if (times.nextUpdate < times.thisUpdate) throw new DerError('nextUpdate');
  return times;
}

function parseListExtensions(extensions: ReadonlyMap<string, Extension>) {
  // RFC 5280 section 5.2.4: a delta list contains changes only.
  if (extensions.has(EXTENSION.delta)) throw new DerError('a delta list');
  for (const [oid, { critical }] of extensions) {
    // RFC 5280 section 5.2
    if (critical && !PROCESSED.has(oid)) throw new DerError(`critical ${oid}`);
  }
  const number = extensions.get(EXTENSION.number);
  const scope = extensions.get(EXTENSION.scope);
  const authority = extensions.get(EXTENSION.authorityKeyId);
  const keyId = authority && parseSequence(authority.value).find(({ tag }) => tag === 0x80);
  return {
    ...(number && { number: parseElement(number.value, TAG.integer).content.toString('hex') }),
    ...(scope && { scope: parseScope(scope.value) }),
    ...(keyId && { authorityKeyId: keyId.content.toString('base64url') }),
  };
}

/** `IssuingDistributionPoint` (RFC 5280 section 5.2.5) */
function parseScope(value: Buffer): ListScope {
  const scope: { points?: readonly string[]; only?: 'users' | 'authorities' } = {};
  for (const field of parseSequence(value)) {
    const isSet = field.content[0] !== 0;
    if (field.tag === 0xa0) scope.points = parsePointNames(field);
    else if (field.tag === 0x83) throw new DerError('the list covers only some reasons');
    else if (!isSet) continue;
    else if (field.tag === 0x84) throw new DerError('the list is indirect');
    else if (scope.only === undefined && field.tag === 0x81) scope.only = 'users';
    else if (scope.only === undefined && field.tag === 0x82) scope.only = 'authorities';
    else throw new DerError('scope');
  }
  return scope;
}
