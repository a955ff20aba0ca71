import { hash } from 'node:crypto';
import { defined } from '../shared/defined.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import { valueOrUndefined } from '../shared/value-or-undefined.ts';
import { isListOfLists, type ListPointer, MAX_POINTERS, parsePointers } from './list-pointer.ts';
import { type FormerState, MAX_STATES } from './service-history.ts';
import { parseDateTime, SKEW_SECONDS } from './signed-list.ts';
import { TrustListRefusal } from './trust-list-refusal.ts';

/** Of a name, an address, a type or a status. */
const MAX_TEXT = 2_000;
/** In base64; chains of them are no certificate. */
const MAX_CERTIFICATE = 20_000;
/** Of all services of a list together: each is parsed by whoever relies on it. */
export const MAX_CERTIFICATES = 5_000;

/** What was read of a list is kept for long, so nothing in it may be of any size. @throws TrustListRefusal `malformed`. */
export function withinBounds(list: TrustList): TrustList {
  const services = list.entities.flatMap((entity) => entity.services);
  const certificates = services.flatMap((service) => service.certificates);
  if (certificates.length > MAX_CERTIFICATES) throw new TrustListRefusal('malformed', 'too many certificates');
  const pointers = list.pointers ?? [];
  const long = [...certificates, ...pointers.flatMap(({ signers }) => signers)];
  const states = services.flatMap((service) => [service, ...(service.history ?? [])]);
  const short = [
    list.territory,
    ...list.entities.flatMap(({ name, country }) => [name, country]),
    ...states.flatMap(({ type, status }) => [type, status]),
    ...pointers.map(({ territory }) => territory),
  ];
  const isLong = (text: string | undefined) => text !== undefined && text.length > MAX_TEXT;
  if (short.some(isLong) || long.some((text) => text.length > MAX_CERTIFICATE)) {
    throw new TrustListRefusal('malformed', 'a text is too long');
  }
  return list;
}

/** A list of trusted entities (ETSI TS 119 602), as far as trust follows from it. */
export type TrustList = {
  readonly sequenceNumber: number;
  readonly issuedAt: Date;
  /** `null`: the list is closed and vouches for nobody. */
  readonly nextUpdate: Date | null;
  readonly entities: readonly TrustedEntity[];
  /** Of the scheme, as the list says. */
  readonly territory?: string;
  /** Lists that it points to and that can be followed; absent where it points to none. */
  readonly pointers?: readonly ListPointer[];
  /** It says that it is there for its pointers. */
  readonly isListOfLists?: true;
};

export type TrustedEntity = {
  /** Tells entities apart wherever they stand: hash of names and country. One name may belong to two of them. */
  readonly id: string;
  readonly name: string;
  readonly country: string | undefined;
  readonly services: readonly TrustedService[];
};

export type TrustedService = {
  readonly type: string | undefined;
  /** Absent in lists where being listed means being approved. */
  readonly status: string | undefined;
  /** DER in standard base64, as they stand in the list, white space removed. */
  readonly certificates: readonly string[];
  /** SHA-256 of each, base64url, and the normalized subject of each CA (`null` for end entities). Absent: they were not parsed. */
  readonly hashes?: readonly string[];
  readonly authorities?: readonly (string | null)[];
  /** When the status began, and what there was before; only of services that have a status. */
  readonly since?: Date;
  readonly history?: readonly FormerState[];
};

/** The rules of parsing that this reader follows (section 6.3.1). */
const VERSION = 1;

/**
 * Reads the verified document. Members that we do not know are passed over, unless they are critical extensions.
 * @throws TrustListRefusal `malformed`, `version`, `critical_extension`, `from_the_future`, `outdated`.
 */
export function parseTrustList(payload: JsonObject, now: Date): TrustList {
  const document = objectOf(payload['LoTE'], 'LoTE');
  const scheme = objectOf(document['ListAndSchemeInformation'], 'ListAndSchemeInformation');
  // TS 119 602 section 6.3.1
  if (scheme['LoTEVersionIdentifier'] !== VERSION) throw new TrustListRefusal('version');
  assertNoCritical(scheme['SchemeExtensions']);
  const issuedAt = parseDateTime(scheme['ListIssueDateTime'], 'ListIssueDateTime');
  if (issuedAt.getTime() > now.getTime() + SKEW_SECONDS * 1000) throw new TrustListRefusal('from_the_future', 'ListIssueDateTime');
  const sequenceNumber = parseSequenceNumber(scheme['LoTESequenceNumber']);
  const entities = listOf(document['TrustedEntitiesList'], 'TrustedEntitiesList').map((entity) => parseEntity(entity, now));
  // TS 119 602 section 6.3.15
  const end = scheme['NextUpdate'];
  const territory = textOf(scheme['SchemeTerritory']);
  const hasPointingType = isListOfLists(textOf(scheme['LoTEType']) ?? '');
  const about = { sequenceNumber, issuedAt, ...defined({ territory }), ...(hasPointingType && { isListOfLists: true as const }) };
  if (end === null) return withinBounds({ ...about, nextUpdate: null, entities: [] });
  const nextUpdate = parseDateTime(end, 'NextUpdate');
  if (nextUpdate <= now) throw new TrustListRefusal('outdated', 'NextUpdate has passed');
  const named = scheme['PointersToOtherLoTE'];
  const pointers = parsePointers(named);
  if (pointers.length > MAX_POINTERS) throw new TrustListRefusal('malformed', 'too many pointers');
  // One without entities is there for its pointers, also where none of them can be followed.
  const isPointing = Array.isArray(named) && named.length > 0;
  return withinBounds({ ...about, nextUpdate, entities, ...(isPointing && { pointers }) });
}

function parseSequenceNumber(value: Json | undefined): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 1) throw new TrustListRefusal('malformed', 'LoTESequenceNumber');
  return value;
}

function parseEntity(value: Json, now: Date): TrustedEntity {
  const entity = objectOf(value, 'TrustedEntity');
  const information = objectOf(entity['TrustedEntityInformation'], 'TrustedEntityInformation');
  assertNoCritical(information['TEInformationExtensions']);
  const names = information['TEName'];
  const [first] = listOf(names, 'TEName');
  const name = isJsonObject(first) ? first['value'] : undefined;
  // TS 119 602 section 6.5.1
  if (typeof name !== 'string') throw new TrustListRefusal('malformed', 'TEName');
  const country = countryOf(information['TEAddress']);
  const identity = [names ?? null, information['TETradeName'] ?? null, country ?? null];
  return {
    id: hash('sha256', JSON.stringify(identity), 'base64url'),
    name,
    country,
    services: listOf(entity['TrustedEntityServices'], 'TrustedEntityServices').map((service) => parseService(service, now)),
  };
}

function countryOf(address: Json | undefined): string | undefined {
  const postal = isJsonObject(address) ? address['TEPostalAddress'] : undefined;
  const first = Array.isArray(postal) ? postal[0] : undefined;
  const country = isJsonObject(first) ? first['Country'] : undefined;
  return typeof country === 'string' ? country : undefined;
}

function parseService(value: Json, now: Date): TrustedService {
  const service = objectOf(value, 'service');
  const information = objectOf(service['ServiceInformation'], 'ServiceInformation');
  assertNoCritical(information['ServiceInformationExtensions']);
  const { ServiceTypeIdentifier: type, ServiceStatus: status, ServiceDigitalIdentity: identity } = information;
  const certificates = isJsonObject(identity) ? identity['X509Certificates'] : undefined;
  // A status that is no text is one that nobody knows, and not none.
  const stated = status === undefined || typeof status === 'string' ? status : '';
  const start = timeOf(information['StatusStartingTime']);
  // A status that has not begun vouches for nothing (TS 119 602 section 6.6.5), and the service keeps its place: one for
  // revocation that is to come does not leave the revocation to the issuers.
  const isUpcoming = start !== undefined && start.getTime() > now.getTime() + SKEW_SECONDS * 1000;
  const known = isUpcoming ? '' : stated;
  return {
    type: typeof type === 'string' ? type : undefined,
    status: known,
    certificates: listOf(certificates, 'X509Certificates').flatMap(parseValue),
    ...(known !== undefined && parsePast(information['StatusStartingTime'], service['ServiceHistory'])),
  };
}

/** What cannot be read of the past vouches for nothing that was issued then. */
function parsePast(
  start: Json | undefined,
  history: Json | undefined,
): { readonly since?: Date; readonly history?: readonly FormerState[] } {
  const since = timeOf(start);
  if (since === undefined) return {};
  const states = (Array.isArray(history) ? history : []).slice(0, MAX_STATES).flatMap((state) => {
    if (!isJsonObject(state)) return [];
    const began = timeOf(state['StatusStartingTime']);
    const status = textOf(state['ServiceStatus']);
    if (began === undefined || status === undefined) return [];
    return [{ type: textOf(state['ServiceTypeIdentifier']), status, since: began }];
  });
  return { since, ...(states.length > 0 && { history: states }) };
}

function timeOf(value: Json | undefined): Date | undefined {
  return valueOrUndefined(() => parseDateTime(value, 'StatusStartingTime'));
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function parseValue(entry: Json): readonly string[] {
  const value = isJsonObject(entry) ? entry['val'] : undefined;
  return typeof value === 'string' ? [value.replaceAll(/\s/g, '')] : [];
}

/** TS 119 602 section 6.3.17: who does not understand a critical extension must not use the list. */
function assertNoCritical(extensions: Json | undefined): void {
  for (const extension of listOf(extensions, 'extensions')) {
    const isCritical =
      isJsonObject(extension) &&
      Object.entries(extension).some(([name, value]) => name.toLowerCase() === 'critical' && value !== false && value !== 'false');
    if (isCritical) throw new TrustListRefusal('critical_extension');
  }
}

function objectOf(value: Json | undefined, name: string): JsonObject {
  if (!isJsonObject(value)) throw new TrustListRefusal('malformed', name);
  return value;
}

/** Lists without entries are left out (section 6.4.0). */
function listOf(value: Json | undefined, name: string): readonly Json[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new TrustListRefusal('malformed', name);
  return value;
}
