import { type ListedCertificate, parseListed } from './listed-certificate.ts';
import type { TrustedEntity, TrustedService, TrustList } from './lote.ts';
import { goodPeriods, type Period } from './service-history.ts';

/** A service that vouches for something, and the one that may revoke for it. Types are compared letter by letter. */
export type ServicePair = {
  readonly issuance: string;
  /** Absent where a list has no such services. */
  readonly revocation?: string;
};

/** Which services of a list vouch for something. */
export type TrustPurpose = {
  readonly services: readonly ServicePair[];
  /** Values of `ServiceStatus` that let a service count; one without a status always does. */
  readonly statuses: readonly string[];
  /**
   * `issuance`: the status counts that a service had when something was issued, by its history (TS 119 612 section 5.6), and not
   * the one that it has at the time of the check.
   */
  readonly statusAt?: 'issuance';
};

const SERVICE_TYPE = 'http://uri.etsi.org/19602/SvcType';

/** Who attests wallets and their keys. Lists of wallet providers carry no status (TS 119 602 annex E). */
export const WALLET_PROVIDERS: TrustPurpose = {
  services: [
    {
      issuance: `${SERVICE_TYPE}/WalletSolution/Issuance`,
      revocation: `${SERVICE_TYPE}/WalletSolution/Revocation`,
    },
    { issuance: `${SERVICE_TYPE}/WalletProvider`, revocation: `${SERVICE_TYPE}/WalletSolution/Revocation` },
  ],
  statuses: [],
};

const XML_LISTS = 'http://uri.etsi.org/TrstSvc';
/** Attestations in trusted lists in XML: qualified ones, those of public bodies and others (ETSI TS 119 612 section 5.5.1). */
const XML_TYPES: readonly string[] = ['EAA/Q', 'EAA/Pub-EAA', 'EAA'].map((kind) => `${XML_LISTS}/Svctype/${kind}`);

/** Services that issue credentials: PIDs, attestations of public bodies and of others, driving licences. */
export const CREDENTIAL_SERVICE_TYPES: readonly string[] = [
  ...['PID', 'PubEAA', 'EAA'].map((kind) => `${SERVICE_TYPE}/${kind}/Issuance`),
  'http://trust.ec.europa.eu/lists/mDL/SvcType/Issuance',
  ...XML_TYPES,
];

/** Who issues credentials. Only lists of public bodies (TS 119 602 annex H) and those in XML carry a status. */
export function credentialIssuers(serviceTypes: readonly string[] = CREDENTIAL_SERVICE_TYPES, statusAt?: 'issuance'): TrustPurpose {
  return {
    services: serviceTypes.map((issuance) => ({ issuance, ...revocationTwin(issuance) })),
    statuses: [
      'http://uri.etsi.org/19602/PubEAAProvidersList/SvcStatus/notified',
      ...['granted', 'recognisedatnationallevel'].map((status) => `${XML_LISTS}/TrustedList/Svcstatus/${status}`),
    ],
    ...(statusAt !== undefined && { statusAt }),
  };
}

const ISSUANCE = '/Issuance';

/** Of the same kind, one speaks about revocation (TS 119 602 annexes D to H). */
function revocationTwin(issuance: string): Pick<ServicePair, 'revocation'> {
  if (XML_TYPES.includes(issuance)) return {};
  return { revocation: `${issuance.slice(0, -ISSUANCE.length)}/Revocation` };
}

/** They attest wallets and those who ask them. Their certificates sign no credentials of users. */
const OTHER_ISSUANCE: ReadonlySet<string> = new Set(
  ['WalletSolution', 'WRPAC', 'WRPRC'].map((kind) => `${SERVICE_TYPE}/${kind}${ISSUANCE}`),
);

/** Whether credentials can be asked for by a type: one without a twin would leave open who may revoke. */
export function isCredentialIssuanceType(type: string): boolean {
  if (XML_TYPES.includes(type)) return true;
  return type.length > ISSUANCE.length && type.endsWith(ISSUANCE) && !OTHER_ISSUANCE.has(type);
}

/** Whether anybody can ask for services of a type, or for those that revoke for them. */
export function isSelectable(type: string): boolean {
  return isCredentialIssuanceType(type) || /\/(?:Issuance|Revocation|WalletProvider)$/.test(type);
}

export type SelectedCertificate = ListedCertificate & {
  readonly entity: Pick<TrustedEntity, 'id' | 'name' | 'country'>;
  /** Of the entity's revocation services; undefined when it lists no such service. */
  readonly revocation: readonly ListedCertificate[] | undefined;
  /** When it vouches for what was issued; at any time unless given. */
  readonly periods?: readonly Period[];
  /** It vouches for nothing that is issued now. */
  readonly isFormer?: true;
};

/** Services and certificates in one part of a selection together, which takes less than two milliseconds where hashes are stored. */
const ITEMS_PER_PART = 100;

/** The certificates that vouch for something, in the order of the list. One that does not parse is passed over. */
export function selectCertificates(list: TrustList, purpose: TrustPurpose): readonly SelectedCertificate[] {
  return [...selectInParts(list, purpose)].flat();
}

/** The same in parts, some of them empty: a caller can serve requests between them, however many services and certificates a list has. */
export function* selectInParts(list: TrustList, purpose: TrustPurpose): Generator<readonly SelectedCertificate[]> {
  const revocation = yield* revocationByService(list, purpose);
  let selected: SelectedCertificate[] = [];
  let items = 0;
  for (const { id, name, country, services } of list.entities) {
    const entity = { id, name, country };
    for (const service of services) {
      if (++items >= ITEMS_PER_PART) {
        yield selected;
        [selected, items] = [[], 0];
      }
      const pair = purpose.services.find(({ issuance }) => issuance === service.type);
      const standing = pair && standingOf(service, purpose);
      if (pair === undefined || standing === undefined) continue;
      const revokers = pair.revocation === undefined ? undefined : revocation.get(keyOf(id, pair.revocation));
      for (const part of readInParts(list, service)) {
        for (const listed of part) selected.push({ ...listed, entity, revocation: revokers, ...standing });
        items += part.length;
        if (items < ITEMS_PER_PART) continue;
        yield selected;
        [selected, items] = [[], 0];
      }
    }
  }
  yield selected;
}

/** Checks the types of the services only. A list without entities fits every purpose, since the first one may come later. */
export function hasServicesFor({ entities }: TrustList, purpose: TrustPurpose): boolean {
  const types = new Set(entities.flatMap(({ services }) => services.map(({ type }) => type)));
  return entities.length === 0 || purpose.services.some(({ issuance }) => types.has(issuance));
}

/**
 * Per entity and type of revocation service. An entity whose revocation service does not count, or has no usable
 * certificate, has nobody to revoke for it.
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
      if (++items >= ITEMS_PER_PART) {
        yield [];
        items = 0;
      }
      const { type } = service;
      if (type === undefined || !types.has(type)) continue;
      const known = certificates.get(keyOf(id, type)) ?? [];
      certificates.set(keyOf(id, type), known);
      if (standingOf(service, purpose) === undefined) continue;
      for (const part of readInParts(list, service)) {
        known.push(...part);
        items += part.length;
        if (items < ITEMS_PER_PART) continue;
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

/** Later than any time. */
const FOR_EVER = new Date(8.64e15);

/** @returns when a service vouches for something; undefined: for nothing. */
function standingOf(
  { status, type, since, history = [] }: TrustedService,
  { statuses, statusAt }: TrustPurpose,
): Pick<SelectedCertificate, 'periods' | 'isFormer'> | undefined {
  const isGood = status === undefined || statuses.includes(status);
  if (statusAt === undefined || status === undefined) return isGood ? {} : undefined;
  // Since when it stands so nobody said, so nothing can be said of the past.
  if (since === undefined) return undefined;
  const former = goodPeriods(since, history, (state) => statuses.includes(state.status) && (state.type ?? type) === type);
  const periods = isGood ? [{ from: since, until: FOR_EVER }, ...former] : former;
  if (periods.length === 0) return undefined;
  return { periods, ...(!isGood && { isFormer: true as const }) };
}

/** A list is asked for its certificates again and again, and they are the same as long as it is. */
const certificatesByList = new WeakMap<TrustList, Map<TrustedService, readonly ListedCertificate[]>>();

function* readInParts(list: TrustList, service: TrustedService): Generator<readonly ListedCertificate[]> {
  const certificates = certificatesByList.get(list) ?? new Map<TrustedService, readonly ListedCertificate[]>();
  certificatesByList.set(list, certificates);
  const cached = certificates.get(service);
  const { length } = cached ?? service.certificates;
  const parts: (readonly ListedCertificate[])[] = [];
  for (let start = 0; start < length; start += ITEMS_PER_PART) {
    const end = start + ITEMS_PER_PART;
    const part = cached?.slice(start, end) ?? readPart(service, start, end);
    if (cached === undefined) parts.push(part);
    yield part;
  }
  if (cached === undefined) certificates.set(service, parts.flat());
}

/** Certificates of a list that an earlier release stored have no hashes, so they are parsed here. */
function readPart(service: TrustedService, start: number, end: number): readonly ListedCertificate[] {
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
