import { hash } from 'node:crypto';
import { defined } from '../shared/defined.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import { valueOrUndefined } from '../shared/value-or-undefined.ts';
import { isListOfLists, type ListPointer, MAX_POINTERS, parsePointers } from './list-pointer.ts';
import { MAX_STATES, type PreviousState } from './service-history.ts';
import { parseDateTime, SKEW_SECONDS } from './signed-list.ts';
import { TrustListRefusal } from './trust-list-refusal.ts';

/** Limit of a name, an address, a type or a status. */
const MAX_TEXT = 2_000;
/** Limit in base64; a text with several certificates is invalid. */
const MAX_CERTIFICATE = 20_000;
/** Limit for all services of a list, because each certificate must be parsed. */
export const MAX_CERTIFICATES = 5_000;

/** Parsed lists are stored for a long time, so the size of their values is limited. @throws TrustListRefusal `malformed`. */
export function assertWithinBounds(list: TrustList): TrustList {
  const services = list.entities.flatMap((entity) => entity.services);
  const certificates = services.flatMap((service) => service.certificates);
  if (certificates.length > MAX_CERTIFICATES) throw new TrustListRefusal('malformed', 'it has too many certificates');
  const pointers = list.pointers ?? [];
  const long = [...certificates, ...pointers.flatMap(({ signers }) => signers)];
  const states = services.flatMap((service) => [service, ...(service.history ?? [])]);
  const shortTexts = [
    list.territory,
    ...list.entities.flatMap(({ name, country }) => [name, country]),
    ...states.flatMap(({ type, status }) => [type, status]),
    ...pointers.map(({ territory }) => territory),
  ];
  const isLong = (text: string | undefined) => text !== undefined && text.length > MAX_TEXT;
  if (shortTexts.some(isLong) || long.some((text) => text.length > MAX_CERTIFICATE)) {
    throw new TrustListRefusal('malformed', 'a text is too long');
  }
  return list;
}

/** The trust-relevant content of a list of trusted entities (ETSI TS 119 602). */
export type TrustList = {
  readonly sequenceNumber: number;
  readonly issuedAt: Date;
  /** `null`: the list is closed and nothing in it is trusted. */
  readonly nextUpdate: Date | null;
  readonly entities: readonly TrustedEntity[];
  readonly territory?: string;
  /** Supported pointers to other lists; absent without pointers. */
  readonly pointers?: readonly ListPointer[];
  readonly isListOfLists?: true;
};

export type TrustedEntity = {
  /** Identifies an entity across lists: hash of names and country. Two entities may have the same name. */
  readonly id: string;
  readonly name: string;
  readonly country: string | undefined;
  readonly services: readonly TrustedService[];
};

export type TrustedService = {
  readonly type: string | undefined;
  /** Absent in lists where being listed means being approved. */
  readonly status: string | undefined;
  /** DER in standard base64 as in the list, without white space. */
  readonly certificates: readonly string[];
  /**
   * SHA-256 of each certificate, base64url, and the normalized subject of each CA (`null` for end entities). Absent if they were not
   * parsed.
   */
  readonly hashes?: readonly string[];
  readonly authorities?: readonly (string | null)[];
  /** Start of the status, and previous states; only for services with a status. */
  readonly since?: Date;
  readonly history?: readonly PreviousState[];
};

/** The supported format version (section 6.3.1). */
const VERSION = 1;

/**
 * Parses the verified document. Unknown properties are ignored, except critical extensions.
 * @throws TrustListRefusal `malformed`, `version`, `critical_extension`, `from_the_future`, `outdated`.
 */
export function parseTrustList(payload: JsonObject, now: Date): TrustList {
  const document = objectOf(payload['LoTE'], 'LoTE');
  const scheme = objectOf(document['ListAndSchemeInformation'], 'ListAndSchemeInformation');
  // TS 119 602 section 6.3.1
  if (scheme['LoTEVersionIdentifier'] !== VERSION) throw new TrustListRefusal('version');
  assertNoCritical(scheme['SchemeExtensions']);
  const issuedAt = parseDateTime(scheme['ListIssueDateTime'], 'ListIssueDateTime');
  if (issuedAt.getTime() > now.getTime() + SKEW_SECONDS * 1000)
    throw new TrustListRefusal('from_the_future', 'ListIssueDateTime is in the future');
  const sequenceNumber = parseSequenceNumber(scheme['LoTESequenceNumber']);
  const entities = listOf(document['TrustedEntitiesList'], 'TrustedEntitiesList').map((entity) => parseEntity(entity, now));
  // TS 119 602 section 6.3.15
  const end = scheme['NextUpdate'];
  const territory = textOf(scheme['SchemeTerritory']);
  const hasPointingType = isListOfLists(textOf(scheme['LoTEType']) ?? '');
  const header = { sequenceNumber, issuedAt, ...defined({ territory }), ...(hasPointingType && { isListOfLists: true as const }) };
  if (end === null) return assertWithinBounds({ ...header, nextUpdate: null, entities: [] });
  const nextUpdate = parseDateTime(end, 'NextUpdate');
  if (nextUpdate <= now) throw new TrustListRefusal('outdated', 'NextUpdate has passed');
  const pointerValue = scheme['PointersToOtherLoTE'];
  const pointers = parsePointers(pointerValue);
  if (pointers.length > MAX_POINTERS) throw new TrustListRefusal('malformed', 'it has too many pointers');
  // A list without entities is a list of lists, even if none of its pointers is supported.
  const isPointing = Array.isArray(pointerValue) && pointerValue.length > 0;
  return assertWithinBounds({ ...header, nextUpdate, entities, ...(isPointing && { pointers }) });
}

function parseSequenceNumber(value: Json | undefined): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 1)
    throw new TrustListRefusal('malformed', `LoTESequenceNumber is not an integer from 1 to ${Number.MAX_SAFE_INTEGER}`);
  return value;
}

function parseEntity(value: Json, now: Date): TrustedEntity {
  const entity = objectOf(value, 'TrustedEntity');
  const information = objectOf(entity['TrustedEntityInformation'], 'TrustedEntityInformation');
  assertNoCritical(information['TEInformationExtensions']);
  const names = information['TEName'];
  const [firstName] = listOf(names, 'TEName');
  const name = isJsonObject(firstName) ? firstName['value'] : undefined;
  // TS 119 602 section 6.5.1
  if (typeof name !== 'string') throw new TrustListRefusal('malformed', 'TEName has no value');
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
  const firstAddress = Array.isArray(postal) ? postal[0] : undefined;
  const country = isJsonObject(firstAddress) ? firstAddress['Country'] : undefined;
  return typeof country === 'string' ? country : undefined;
}

function parseService(value: Json, now: Date): TrustedService {
  const service = objectOf(value, 'service');
  const information = objectOf(service['ServiceInformation'], 'ServiceInformation');
  assertNoCritical(information['ServiceInformationExtensions']);
  const { ServiceTypeIdentifier: type, ServiceStatus: status, ServiceDigitalIdentity: identity } = information;
  const certificates = isJsonObject(identity) ? identity['X509Certificates'] : undefined;
  // A status of another type than text is unknown, not absent.
  const statedStatus = status === undefined || typeof status === 'string' ? status : '';
  const start = timeOf(information['StatusStartingTime']);
  // A status that has not begun is not trusted (TS 119 602 section 6.6.5), but the service remains listed: a future revocation service must
  // not leave the revocation to the issuers.
  const isUpcoming = start !== undefined && start.getTime() > now.getTime() + SKEW_SECONDS * 1000;
  const effectiveStatus = isUpcoming ? '' : statedStatus;
  return {
    type: typeof type === 'string' ? type : undefined,
    status: effectiveStatus,
    certificates: listOf(certificates, 'X509Certificates').flatMap(parseValue),
    ...(effectiveStatus !== undefined && parseHistory(information['StatusStartingTime'], service['ServiceHistory'])),
  };
}

/** An invalid history is not trusted for credentials issued in that time. */
function parseHistory(
  start: Json | undefined,
  history: Json | undefined,
): { readonly since?: Date; readonly history?: readonly PreviousState[] } {
  const currentStart = timeOf(start);
  if (currentStart === undefined) return {};
  const states = (Array.isArray(history) ? history : []).slice(0, MAX_STATES).flatMap((state) => {
    if (!isJsonObject(state)) return [];
    const startedAt = timeOf(state['StatusStartingTime']);
    const status = textOf(state['ServiceStatus']);
    if (startedAt === undefined || status === undefined) return [];
    return [{ type: textOf(state['ServiceTypeIdentifier']), status, since: startedAt }];
  });
  return { since: currentStart, ...(states.length > 0 && { history: states }) };
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

/** TS 119 602 section 6.3.17: a list with an unsupported critical extension must not be used. */
function assertNoCritical(extensions: Json | undefined): void {
  for (const extension of listOf(extensions, 'extensions')) {
    const isCritical =
      isJsonObject(extension) &&
      Object.entries(extension).some(([name, value]) => name.toLowerCase() === 'critical' && value !== false && value !== 'false');
    if (isCritical) throw new TrustListRefusal('critical_extension');
  }
}

function objectOf(value: Json | undefined, name: string): JsonObject {
  if (!isJsonObject(value)) throw new TrustListRefusal('malformed', `${name} is not an object`);
  return value;
}

/** Empty lists are omitted (section 6.4.0). */
function listOf(value: Json | undefined, name: string): readonly Json[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new TrustListRefusal('malformed', `${name} is not an array`);
  return value;
}
