import { type ListedCertificate, parseListed } from './listed-certificate.ts';
import type { TrustedEntity, TrustedService, TrustList } from './lote.ts';
import { approvedPeriods, type Period } from './service-history.ts';

/** An issuance service type, and the type of its revocation service. Types are compared exactly. */
export type ServicePair = {
  readonly issuance: string;
  /** Absent for lists without such services. */
  readonly revocation?: string;
};

/** Services of a list that are trusted for a purpose. */
export type TrustPurpose = {
  readonly services: readonly ServicePair[];
  /** Accepted values of `ServiceStatus`; services without a status are always accepted. */
  readonly statuses: readonly string[];
  /**
   * `issuance`: the status at the time of issuance decides, by the service history (TS 119 612 section 5.6), instead of the current one.
   */
  readonly statusAt?: 'issuance';
};

const SERVICE_TYPE = 'http://uri.etsi.org/19602/SvcType';

/** Providers that attest wallets and their keys. Lists of wallet providers contain no status (TS 119 602 annex E). */
export const WALLET_PROVIDERS: TrustPurpose = {
  services: [
    { issuance: `${SERVICE_TYPE}/WalletSolution/Issuance`, revocation: `${SERVICE_TYPE}/WalletSolution/Revocation` },
    { issuance: `${SERVICE_TYPE}/WalletProvider`, revocation: `${SERVICE_TYPE}/WalletSolution/Revocation` },
  ],
  statuses: [],
};

const XML_LISTS = 'http://uri.etsi.org/TrstSvc';
/** Types of attestations in XML trusted lists: qualified, of public bodies, and others (ETSI TS 119 612 section 5.5.1). */
const XML_TYPES: readonly string[] = ['EAA/Q', 'EAA/Pub-EAA', 'EAA'].map((kind) => `${XML_LISTS}/Svctype/${kind}`);

/** Services that issue credentials: PIDs, attestations of public bodies and of others, driving licences. */
export const CREDENTIAL_SERVICE_TYPES: readonly string[] = [
  ...['PID', 'PubEAA', 'EAA'].map((kind) => `${SERVICE_TYPE}/${kind}/Issuance`),
  'http://trust.ec.europa.eu/lists/mDL/SvcType/Issuance',
  ...XML_TYPES,
];

/** Issuers of credentials. Only lists of public bodies (TS 119 602 annex H) and XML lists contain a status. */
export function credentialIssuers(serviceTypes: readonly string[] = CREDENTIAL_SERVICE_TYPES, statusAt?: 'issuance'): TrustPurpose {
  return {
    services: serviceTypes.map((issuance) => ({ issuance, ...revocationTypeOf(issuance) })),
    statuses: [
      'http://uri.etsi.org/19602/PubEAAProvidersList/SvcStatus/notified',
      ...['granted', 'recognisedatnationallevel'].map((status) => `${XML_LISTS}/TrustedList/Svcstatus/${status}`),
    ],
    ...(statusAt !== undefined && { statusAt }),
  };
}

const ISSUANCE = '/Issuance';

/** The revocation service type of the same kind (TS 119 602 annexes D to H). */
function revocationTypeOf(issuance: string): Pick<ServicePair, 'revocation'> {
  if (XML_TYPES.includes(issuance)) return {};
  return { revocation: `${issuance.slice(0, -ISSUANCE.length)}/Revocation` };
}

/** Services that attest wallets and relying parties. Their certificates sign no credentials of users. */
const OTHER_ISSUANCE: ReadonlySet<string> = new Set(
  ['WalletSolution', 'WRPAC', 'WRPRC'].map((kind) => `${SERVICE_TYPE}/${kind}${ISSUANCE}`),
);

/** True for types of credential issuers: a type without a revocation type would leave open which service may revoke. */
export function isCredentialIssuanceType(type: string): boolean {
  if (XML_TYPES.includes(type)) return true;
  return type.length > ISSUANCE.length && type.endsWith(ISSUANCE) && !OTHER_ISSUANCE.has(type);
}

/** True for service types that any purpose uses. */
export function isRelevantServiceType(type: string): boolean {
  return isCredentialIssuanceType(type) || /\/(?:Issuance|Revocation|WalletProvider)$/.test(type);
}

export type SelectedCertificate = ListedCertificate & {
  readonly entity: Pick<TrustedEntity, 'id' | 'name' | 'country'>;
  /** Certificates of the entity's revocation services; undefined when it has no such service. */
  readonly revocation: readonly ListedCertificate[] | undefined;
  /** Issuance times for which it is trusted; absent for any time. */
  readonly periods?: readonly Period[];
  /** True if it is not trusted for new credentials. */
  readonly isFormer?: true;
};

/** Limit of services and certificates per chunk, which takes less than two milliseconds if hashes are stored. */
const ITEMS_PER_CHUNK = 100;

/** The trusted certificates for a purpose, in the order of the list. Invalid certificates are skipped. */
export function selectCertificates(list: TrustList, purpose: TrustPurpose): readonly SelectedCertificate[] {
  return [...selectInChunks(list, purpose)].flat();
}

/** Selects in chunks, some of them empty, so that the caller can serve requests in between, independent of the list's size. */
export function* selectInChunks(list: TrustList, purpose: TrustPurpose): Generator<readonly SelectedCertificate[]> {
  const revocation = yield* revocationByService(list, purpose);
  let selected: SelectedCertificate[] = [];
  let items = 0;
  for (const { id, name, country, services } of list.entities) {
    const entity = { id, name, country };
    for (const service of services) {
      if (++items >= ITEMS_PER_CHUNK) {
        yield selected;
        [selected, items] = [[], 0];
      }
      const pair = purpose.services.find(({ issuance }) => issuance === service.type);
      const trust = pair && trustedPeriods(service, purpose);
      if (pair === undefined || trust === undefined) continue;
      const revocationCertificates = pair.revocation === undefined ? undefined : revocation.get(keyOf(id, pair.revocation));
      for (const part of certificateChunks(list, service)) {
        for (const certificate of part) selected.push({ ...certificate, entity, revocation: revocationCertificates, ...trust });
        items += part.length;
        if (items < ITEMS_PER_CHUNK) continue;
        yield selected;
        [selected, items] = [[], 0];
      }
    }
  }
  yield selected;
}

/** Checks service types only. A list without entities is suitable for every purpose, because entities may be added later. */
export function hasServicesFor({ entities }: TrustList, purpose: TrustPurpose): boolean {
  const types = new Set(entities.flatMap(({ services }) => services.map(({ type }) => type)));
  return entities.length === 0 || purpose.services.some(({ issuance }) => types.has(issuance));
}

/**
 * Revocation certificates by entity and service type. An entity whose revocation service is not approved, or has no valid certificate,
 * cannot have revocations.
 */
function* revocationByService(
  list: TrustList,
  purpose: TrustPurpose,
): Generator<readonly SelectedCertificate[], ReadonlyMap<string, readonly ListedCertificate[]>> {
  const types = new Set(purpose.services.flatMap(({ revocation }) => revocation ?? []));
  const certificates = new Map<string, ListedCertificate[]>();
  let items = 0;
  for (const { id, services } of list.entities) {
    for (const service of services) {
      if (++items >= ITEMS_PER_CHUNK) {
        yield [];
        items = 0;
      }
      const { type } = service;
      if (type === undefined || !types.has(type)) continue;
      const entityCertificates = certificates.get(keyOf(id, type)) ?? [];
      certificates.set(keyOf(id, type), entityCertificates);
      if (trustedPeriods(service, purpose) === undefined) continue;
      for (const part of certificateChunks(list, service)) {
        entityCertificates.push(...part);
        items += part.length;
        if (items < ITEMS_PER_CHUNK) continue;
        yield [];
        items = 0;
      }
    }
  }
  return certificates;
}

function keyOf(entityId: string, type: string): string {
  return `${entityId} ${type}`;
}

const FOR_EVER = new Date(8.64e15);

/** @returns the times for which a service is trusted; undefined if it is not. */
function trustedPeriods(
  { status, type, since: currentStart, history = [] }: TrustedService,
  { statuses, statusAt }: TrustPurpose,
): Pick<SelectedCertificate, 'periods' | 'isFormer'> | undefined {
  const isGood = status === undefined || statuses.includes(status);
  if (statusAt === undefined || status === undefined) return isGood ? {} : undefined;
  // Without the start of the current status, the past is unknown.
  if (currentStart === undefined) return undefined;
  const previousPeriods = approvedPeriods(
    currentStart,
    history,
    (state) => statuses.includes(state.status) && (state.type ?? type) === type,
  );
  const periods = isGood ? [{ from: currentStart, until: FOR_EVER }, ...previousPeriods] : previousPeriods;
  if (periods.length === 0) return undefined;
  return { periods, ...(!isGood && { isFormer: true as const }) };
}

/** Certificates are selected repeatedly, so they are cached per list. */
const certificatesByList = new WeakMap<TrustList, Map<TrustedService, readonly ListedCertificate[]>>();

function* certificateChunks(list: TrustList, service: TrustedService): Generator<readonly ListedCertificate[]> {
  const certificates = certificatesByList.get(list) ?? new Map<TrustedService, readonly ListedCertificate[]>();
  certificatesByList.set(list, certificates);
  const cached = certificates.get(service);
  const { length } = cached ?? service.certificates;
  const parts: (readonly ListedCertificate[])[] = [];
  for (let start = 0; start < length; start += ITEMS_PER_CHUNK) {
    const end = start + ITEMS_PER_CHUNK;
    const part = cached?.slice(start, end) ?? readChunk(service, start, end);
    if (cached === undefined) parts.push(part);
    yield part;
  }
  if (cached === undefined) certificates.set(service, parts.flat());
}

/** Certificates of lists that an earlier release stored have no hashes, so they are parsed here. */
function readChunk(service: TrustedService, start: number, end: number): readonly ListedCertificate[] {
  const texts = service.certificates.slice(start, end);
  const { certificates, hashes, authorities } =
    service.hashes === undefined
      ? parseListed(texts)
      : { certificates: texts, hashes: service.hashes.slice(start, end), authorities: service.authorities?.slice(start, end) };
  return certificates.map((certificate, index) => {
    const authority = authorities?.[index];
    const hash = hashes[index] ?? '';
    return authority === undefined ? { certificate, hash } : { certificate, hash, authority };
  });
}
