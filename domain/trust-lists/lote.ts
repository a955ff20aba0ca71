import { hash } from 'node:crypto';
import { defined } from '../shared/defined.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import { withinBounds } from './list-bounds.ts';
import { isListOfLists, type ListPointer, MAX_POINTERS, readPointers } from './list-pointer.ts';
import { type FormerState, MAX_STATES } from './service-history.ts';
import { readDateTime, SKEW_SECONDS } from './signed-list.ts';
import { TrustListRefusal } from './trust-list-refusal.ts';

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
export function readTrustList(payload: JsonObject, now: Date): TrustList {
  const document = objectOf(payload['LoTE'], 'LoTE');
  const scheme = objectOf(document['ListAndSchemeInformation'], 'ListAndSchemeInformation');
  // TS 119 602 section 6.3.1
  if (scheme['LoTEVersionIdentifier'] !== VERSION) throw new TrustListRefusal('version');
  refuseCritical(scheme['SchemeExtensions']);
  const issuedAt = readDateTime(scheme['ListIssueDateTime'], 'ListIssueDateTime');
  if (issuedAt.getTime() > now.getTime() + SKEW_SECONDS * 1000) {
    throw new TrustListRefusal('from_the_future', 'ListIssueDateTime');
  }
  const sequenceNumber = readSequenceNumber(scheme['LoTESequenceNumber']);
  const entities = listOf(document['TrustedEntitiesList'], 'TrustedEntitiesList').map((entity) =>
    readEntity(entity, now),
  );
  // TS 119 602 section 6.3.15
  const end = scheme['NextUpdate'];
  const territory = textOf(scheme['SchemeTerritory']);
  const hasPointingType = isListOfLists(textOf(scheme['LoTEType']) ?? '');
  const about = {
    sequenceNumber,
    issuedAt,
    ...defined({ territory }),
    ...(hasPointingType && { isListOfLists: true as const }),
  };
  if (end === null) return withinBounds({ ...about, nextUpdate: null, entities: [] });
  const nextUpdate = readDateTime(end, 'NextUpdate');
  if (nextUpdate <= now) throw new TrustListRefusal('outdated', 'NextUpdate has passed');
  const named = scheme['PointersToOtherLoTE'];
  const pointers = readPointers(named);
  if (pointers.length > MAX_POINTERS) throw new TrustListRefusal('malformed', 'too many pointers');
  // One without entities is there for its pointers, also where none of them can be followed.
  const isPointing = Array.isArray(named) && named.length > 0;
  return withinBounds({ ...about, nextUpdate, entities, ...(isPointing && { pointers }) });
}

function readSequenceNumber(value: Json | undefined): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 1) {
    throw new TrustListRefusal('malformed', 'LoTESequenceNumber');
  }
  return value;
}

function readEntity(value: Json, now: Date): TrustedEntity {
  const entity = objectOf(value, 'TrustedEntity');
  const information = objectOf(entity['TrustedEntityInformation'], 'TrustedEntityInformation');
  refuseCritical(information['TEInformationExtensions']);
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
    services: listOf(entity['TrustedEntityServices'], 'TrustedEntityServices').map((service) =>
      readService(service, now),
    ),
  };
}

function countryOf(address: Json | undefined): string | undefined {
  const postal = isJsonObject(address) ? address['TEPostalAddress'] : undefined;
  const first = Array.isArray(postal) ? postal[0] : undefined;
  const country = isJsonObject(first) ? first['Country'] : undefined;
  return typeof country === 'string' ? country : undefined;
}

function readService(value: Json, now: Date): TrustedService {
  const service = objectOf(value, 'service');
  const information = objectOf(service['ServiceInformation'], 'ServiceInformation');
  refuseCritical(information['ServiceInformationExtensions']);
  const {
    ServiceTypeIdentifier: type,
    ServiceStatus: status,
    ServiceDigitalIdentity: identity,
  } = information;
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
    certificates: listOf(certificates, 'X509Certificates').flatMap(readValue),
    ...(known !== undefined && readPast(information['StatusStartingTime'], service['ServiceHistory'])),
  };
}

/** What cannot be read of the past vouches for nothing that was issued then. */
function readPast(
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
  try {
    return readDateTime(value, 'StatusStartingTime');
  } catch {
    return undefined;
  }
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function readValue(entry: Json): readonly string[] {
  const value = isJsonObject(entry) ? entry['val'] : undefined;
  return typeof value === 'string' ? [value.replaceAll(/\s/g, '')] : [];
}

/** TS 119 602 section 6.3.17: who does not understand a critical extension must not use the list. */
function refuseCritical(extensions: Json | undefined): void {
  for (const extension of listOf(extensions, 'extensions')) {
    const isCritical =
      isJsonObject(extension) &&
      Object.entries(extension).some(
        ([name, value]) => name.toLowerCase() === 'critical' && value !== false && value !== 'false',
      );
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
