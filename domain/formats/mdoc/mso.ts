import { CLOCK_TOLERANCE_MS } from '../../shared/clock-tolerance.ts';
import { Refusal } from '../../shared/refusal.ts';
import { decodeCbor } from '../cbor/decode.ts';
import { type Cbor, type CborMap, EncodedCbor, isArray, isMap, TAG, Tagged } from '../cbor/values.ts';
import { assertVersion, parseMap } from './parse.ts';

/** The hashes of ISO/IEC 18013-5 section 9.1.2.5, by their names in node:crypto. */
const HASHES: ReadonlyMap<Cbor, string> = new Map([
  ['SHA-256', 'sha256'],
  ['SHA-384', 'sha384'],
  ['SHA-512', 'sha512'],
]);

const TDATE = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/;

export type ValidityInfo = { readonly signed: Date; readonly validFrom: Date; readonly validUntil: Date; readonly expectedUpdate?: Date };

/** Elements that a device may sign itself (ISO/IEC 18013-5 section 9.1.2.4, `KeyAuthorizations`). */
export type KeyAuthorizations = { readonly nameSpaces: ReadonlySet<Cbor>; readonly dataElements: ReadonlyMap<Cbor, ReadonlySet<Cbor>> };

/** The content signed by the issuer (ISO/IEC 18013-5 section 9.1.2.4). */
export type MobileSecurityObject = {
  readonly docType: string;
  readonly hashName: string;
  /** Maps of digests by digestID, by namespace. */
  readonly valueDigests: CborMap;
  /** A COSE_Key, not yet parsed. */
  readonly deviceKey: Cbor;
  readonly authorizations: KeyAuthorizations;
  readonly validity: ValidityInfo;
  readonly status?: Cbor;
};

/**
 * Parses the verified payload of `issuerAuth`.
 * @throws Refusal `malformed`, `unsupported_version` or `unsupported_hash`.
 */
export function parseMso(payload: Buffer): MobileSecurityObject {
  const embeddedMso = decodeCbor(payload);
  // ISO/IEC 18013-5 section 9.1.2.4: MobileSecurityObjectBytes have tag 24.
  if (!(embeddedMso instanceof EncodedCbor)) throw new Refusal('malformed', 'the payload has no tag 24');
  const mso = parseMap(decodeCbor(embeddedMso.content), 'the security object');
  assertVersion(mso.get('version'));
  const hashName = HASHES.get(mso.get('digestAlgorithm'));
  if (hashName === undefined) throw new Refusal('unsupported_hash');
  const docType = mso.get('docType');
  if (typeof docType !== 'string') throw new Refusal('malformed', 'docType of the security object');
  const keyInfo = parseMap(mso.get('deviceKeyInfo'), 'deviceKeyInfo');
  return {
    docType,
    hashName,
    valueDigests: parseMap(mso.get('valueDigests'), 'valueDigests'),
    deviceKey: keyInfo.get('deviceKey'),
    authorizations: parseAuthorizations(keyInfo.get('keyAuthorizations')),
    validity: parseValidity(parseMap(mso.get('validityInfo'), 'validityInfo')),
    ...(mso.has('status') && { status: mso.get('status') }),
  };
}

function parseValidity(info: CborMap): ValidityInfo {
  const validity = {
    signed: parseTdate(info.get('signed'), 'signed'),
    validFrom: parseTdate(info.get('validFrom'), 'validFrom'),
    validUntil: parseTdate(info.get('validUntil'), 'validUntil'),
  };
  return info.has('expectedUpdate') ? { ...validity, expectedUpdate: parseTdate(info.get('expectedUpdate'), 'expectedUpdate') } : validity;
}

/** ISO/IEC 18013-5 section 9.1.2.4: tag 0, UTC, no fractions of seconds. */
function parseTdate(value: Cbor, what: string): Date {
  const text = value instanceof Tagged && value.tag === TAG.dateTime ? value.value : undefined;
  const time = typeof text === 'string' && TDATE.test(text) ? new Date(text) : undefined;
  if (time === undefined || Number.isNaN(time.getTime())) throw new Refusal('malformed', what);
  return time;
}

function parseAuthorizations(value: Cbor): KeyAuthorizations {
  if (value === undefined) return { nameSpaces: new Set(), dataElements: new Map() };
  const map = parseMap(value, 'keyAuthorizations');
  const nameSpaces = map.get('nameSpaces');
  const dataElements = map.get('dataElements');
  if (dataElements !== undefined && !isMap(dataElements)) throw new Refusal('malformed', 'dataElements');
  return {
    nameSpaces: readNames(nameSpaces),
    dataElements: new Map([...(dataElements ?? [])].map(([namespace, names]) => [namespace, readNames(names)])),
  };
}

function readNames(value: Cbor): ReadonlySet<Cbor> {
  if (value === undefined) return new Set();
  if (!isArray(value)) throw new Refusal('malformed', 'keyAuthorizations');
  return new Set(value);
}

/**
 * Validates the times of a credential against `now` and against the validity of the signer's certificate.
 * @throws Refusal `credential_expired`, `credential_not_yet_valid` or `signed_outside_certificate`.
 */
export function assertValidity(
  { signed, validFrom, validUntil }: ValidityInfo,
  signer: { readonly notBefore: Date; readonly notAfter: Date },
  now: Date,
): void {
  const time = now.getTime();
  if (validUntil.getTime() <= time - CLOCK_TOLERANCE_MS) throw new Refusal('credential_expired');
  if (validFrom.getTime() > time + CLOCK_TOLERANCE_MS) throw new Refusal('credential_not_yet_valid');
  if (signed.getTime() > time + CLOCK_TOLERANCE_MS) throw new Refusal('credential_not_yet_valid', 'signed');
  // ISO/IEC 18013-5 section 9.3.1
  if (signed < signer.notBefore || signed > signer.notAfter) throw new Refusal('signed_outside_certificate');
}
