import {
  type CompactJws,
  JADES_CRITICAL,
  parseAlgorithm,
  parseCompactJws,
  parseX5c,
  supportsCriticalParameters,
} from '../formats/jose/compact.ts';
import { CLOCK_TOLERANCE_MS } from '../shared/clock-tolerance.ts';
import { defined } from '../shared/defined.ts';
import { canonicalJson, isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import { SIGNING_ALGORITHMS, type SigningAlgorithm } from '../shared/jwk.ts';
import type { RegisteredCredential } from './coverage.ts';
import { parsePurposes, type StatedPurpose } from './stated-purpose.ts';

const TYPE = 'rc-wrp+jwt';
const MAX_LENGTH = 64 * 1024;
const MAX_CREDENTIALS = 200;
const MAX_CLAIMS = 1_000;

export class RegistrationCertificateRefusal extends Error {
  /** True if it may become usable: a service for its verification is unreachable. */
  readonly isTemporary: boolean;

  /** @param message half a sentence about the certificate, for the operator. */
  constructor(message: string, isTemporary = false) {
    super(message);
    this.name = 'RegistrationCertificateRefusal';
    this.isTemporary = isTemporary;
  }
}

/** A parsed certificate; its content is not trusted before its signature is verified. */
export type ParsedRegistrationCertificate = {
  readonly jws: CompactJws;
  readonly algorithm: SigningAlgorithm;
  /** DER in standard base64, the signer first. */
  readonly chain: readonly string[];
};

/** Content of a registration certificate (ETSI TS 119 475 V1.2.1, and the names of V1.1.1 and of registrars). */
export type RegistrationCertificate = {
  /** Semantic identifier of the relying party, such as `VATDE-123456789`. */
  readonly subject: string;
  /** Identifier of the intermediary that requests on its behalf. */
  readonly intermediary?: string;
  readonly intendedUseId?: string;
  /** Purposes for display to users; undefined if there are none. */
  readonly purposes?: readonly StatedPurpose[];
  /** Undefined if none are registered. */
  readonly credentials?: readonly RegisteredCredential[];
  /** Types that its subject may issue (`provides_attestations`). Undefined if none are registered. */
  readonly provides?: readonly RegisteredCredential[];
  readonly issuedAt: Date;
  readonly notBefore?: Date;
  readonly expiresAt?: Date;
  readonly status?: Json;
};

export type StoredRegistrationCertificate = {
  /** Hash of the request for which it was obtained. */
  readonly id: string;
  readonly certificateId: string;
  readonly jwt: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

/** Parses the compact form (JAdES baseline B-B). @throws RegistrationCertificateRefusal */
export function parseRegistrationCertificate(text: string): ParsedRegistrationCertificate {
  const jws = parseCompactJws(text, { length: MAX_LENGTH });
  if (jws === undefined) throw new RegistrationCertificateRefusal('it is not a compact JWS');
  const { crit: _crit, ...header } = jws.header;
  // TS 119 475 section 5.2.2; other profiles have other content, which could not be compared with a query
  if (header['typ'] !== TYPE) throw new RegistrationCertificateRefusal(`its type is not ${TYPE}`);
  if (!supportsCriticalParameters(jws.header, JADES_CRITICAL)) {
    throw new RegistrationCertificateRefusal('it has a critical header parameter that is not understood');
  }
  const verdict = parseAlgorithm(header, SIGNING_ALGORITHMS);
  if (verdict.fault === 'crit') throw new RegistrationCertificateRefusal('its payload is not encoded (b64)');
  if (verdict.fault !== undefined) {
    throw new RegistrationCertificateRefusal(`its signature algorithm is none of ${SIGNING_ALGORITHMS.join(', ')}`);
  }
  const chain = parseX5c(header);
  if (chain === undefined) throw new RegistrationCertificateRefusal('the certificate of its signer is missing (x5c)');
  return { jws, algorithm: verdict.algorithm, chain };
}

/** Parses the payload in either vocabulary. @throws RegistrationCertificateRefusal */
export function parseRegistration({ jws: { payload } }: ParsedRegistrationCertificate): RegistrationCertificate {
  const { credentials } = payload;
  const intermediary = parseParty(payload['intermediary'] ?? payload['act'], 'intermediary');
  const intendedUseId = parseIntendedUse(payload);
  const issuedAt = parseTime(payload, 'iat');
  if (issuedAt === undefined) throw malformed('iat');
  const notBefore = parseTime(payload, 'nbf');
  const expiresAt = parseTime(payload, 'exp');
  const purposes = parsePurposes(payload['purpose']);
  const subject = parseParty(payload['sub'], 'sub');
  if (subject === undefined) throw malformed('sub');
  return defined({
    subject,
    intermediary,
    intendedUseId,
    issuedAt,
    notBefore,
    expiresAt,
    purposes: purposes.length === 0 ? undefined : purposes,
    credentials: credentials === undefined ? undefined : parseCredentials(credentials),
    provides: parseProvided(payload['provides_attestations'] ?? payload['provided_attestations']),
    status: payload['status'],
  });
}

/** TS 119 475 section 5.2.4, and the name in earlier versions. */
function parseProvided(value: Json | undefined): readonly RegisteredCredential[] | undefined {
  const name = 'provides_attestations';
  if (value === undefined) return undefined;
  return parseList(value, MAX_CREDENTIALS, name).map((entry) => {
    const { format, meta } = isJsonObject(entry) ? entry : {};
    if (typeof format !== 'string' || meta === undefined || !isJsonObject(meta)) throw malformed(name);
    return { format, meta };
  });
}

/** An identifier as text (V1.2.1), or in an object: `sub: {legal_name, id}`, `intermediary: {sub, sname}`. */
function parseParty(value: Json | undefined, name: string): string | undefined {
  if (value === undefined) return undefined;
  const identifier = isJsonObject(value) ? (value['id'] ?? value['sub']) : value;
  if (typeof identifier !== 'string' || identifier === '') throw malformed(name);
  return identifier;
}

/** TS 119 475 section 5.2.3: one certificate is for one intended use. */
function parseIntendedUse(payload: JsonObject): string | undefined {
  const statedUses = payload['intended_use_id'] ?? payload['intended_uses'] ?? [];
  const uses = (Array.isArray(statedUses) ? statedUses : [statedUses]) as readonly Json[];
  if (uses.length > 1) throw new RegistrationCertificateRefusal('it is for several intended uses at once');
  const [use] = uses;
  const id = isJsonObject(use) ? use['id'] : use;
  if (use !== undefined && (typeof id !== 'string' || id === '')) throw malformed('intended_use_id');
  return id as string | undefined;
}

function parseCredentials(value: Json): readonly RegisteredCredential[] {
  return parseList(value, MAX_CREDENTIALS, 'credentials').map((entry, index) => {
    const place = `credentials.${index}`;
    if (!isJsonObject(entry)) throw malformed(place);
    // `claims` is the name before V1.2.1. If both are present and differ, verifiers could disagree.
    const { format, meta = {}, claim, claims = claim } = entry;
    if (typeof format !== 'string') throw malformed(`${place}.format`);
    if (!isJsonObject(meta)) throw malformed(`${place}.meta`);
    if (claim !== undefined && canonicalJson(claims) !== canonicalJson(claim)) {
      throw new RegistrationCertificateRefusal(`its ${place}.claim and ${place}.claims differ`);
    }
    const name = claim === undefined ? 'claims' : 'claim';
    return { format, meta, ...(claims !== undefined && { claims: parseClaims(claims, `${place}.${name}`) }) };
  });
}

function parseClaims(value: Json, place: string): NonNullable<RegisteredCredential['claims']> {
  return parseList(value, MAX_CLAIMS, place).map((entry, index) => {
    if (!isJsonObject(entry)) throw malformed(`${place}.${index}`);
    const { path, values } = entry;
    if (!Array.isArray(path)) throw malformed(`${place}.${index}.path`);
    if (values !== undefined && !Array.isArray(values)) throw malformed(`${place}.${index}.values`);
    return defined({ path: path as readonly Json[], values: values as readonly Json[] | undefined });
  });
}

function parseList(value: Json, max: number, name: string): readonly Json[] {
  if (!Array.isArray(value) || value.length > max) throw malformed(name);
  return value as readonly Json[];
}

/** RFC 7519 section 2 */
function parseTime(payload: JsonObject, name: 'iat' | 'nbf' | 'exp'): Date | undefined {
  const value = payload[name];
  if (value === undefined) return undefined;
  const time = typeof value === 'number' ? new Date(value * 1000) : undefined;
  if (time === undefined || Number.isNaN(time.getTime())) throw malformed(name);
  return time;
}

function malformed(name: string): RegistrationCertificateRefusal {
  return new RegistrationCertificateRefusal(`its ${name} is missing or malformed`);
}

/** The reason why a certificate is not valid at this time, if any. */
export function findTimeProblem(
  { issuedAt, notBefore, expiresAt }: Pick<RegistrationCertificate, 'issuedAt' | 'notBefore' | 'expiresAt'>,
  now: Date,
): string | undefined {
  const earliest = Math.max(issuedAt.getTime(), notBefore?.getTime() ?? 0);
  if (earliest > now.getTime() + CLOCK_TOLERANCE_MS) return 'it is not valid yet';
  if (expiresAt !== undefined && expiresAt.getTime() + CLOCK_TOLERANCE_MS <= now.getTime()) {
    return `it expired at ${expiresAt.toISOString()}`;
  }
  return undefined;
}

/**
 * True if a certificate belongs to the verifier: as the relying party, or as its intermediary.
 * @param identifiers of the access certificate. Certificates of an internal CA have none, so nothing can differ.
 */
export function belongsToVerifier(
  { subject, intermediary }: Pick<RegistrationCertificate, 'subject' | 'intermediary'>,
  identifiers: readonly string[],
): boolean {
  return identifiers.every((identifier) => identifier === subject || identifier === intermediary);
}
