const ETSI = 'http://uri.etsi.org/19602';
const COMMISSION = 'http://trust.ec.europa.eu/lists/mDL';
/** TS 119 602 annex H: history is kept forever. */
const RETAIN_FOREVER = 65_535;

export type ListProfile = {
  /** Part of the names of services. */
  readonly service: string;
  readonly serviceTypes: string;
  /** Values that the standard fixes for lists of this type. */
  readonly fixed?: {
    readonly StatusDeterminationApproach: string;
    readonly SchemeTypeCommunityRules: string;
    /** Prefix of the entity's information URI, followed by the country. */
    readonly entityUri?: string;
    /** Prefix of the service statuses; in all other lists being listed means being approved. */
    readonly statuses?: string;
    /** Retention of history (TS 119 602 section 6.3.12); all other lists have none. */
    readonly HistoricalInformationPeriod?: number;
  };
};

/** Lists of issuers of any attestations: without a type, or with one of the operator. */
const ATTESTATIONS: ListProfile = { service: 'EAA', serviceTypes: `${ETSI}/SvcType/EAA` };

/** TS 119 602 annexes D to H. The annex about registration certificates misspells its own approach. */
const PROFILES: Readonly<Record<string, ListProfile>> = {
  [`${ETSI}/LoTEType/EUPIDProvidersList`]: european('PID', 'PIDProvider', { approach: 'PIDProvidersList', rules: 'PIDProviders' }),
  [`${ETSI}/LoTEType/EUWalletProvidersList`]: european('WalletSolution', 'WalletProvider'),
  [`${ETSI}/LoTEType/EUWRPACProvidersList`]: european('WRPAC', 'WRPACProvider'),
  [`${ETSI}/LoTEType/EUWRPRCProvidersList`]: european('WRPRC', 'WRPRCProvider', {
    approach: 'WRPRCrovidersList',
    rules: 'WRPRCProvidersList',
  }),
  [`${ETSI}/LoTEType/EUPubEAAProvidersList`]: withStatuses(european('PubEAA', 'PubEAAProvider')),
  // The Commission's list of issuers of driving licences, which the standard does not define.
  [`${COMMISSION}/mDLProvidersListType`]: {
    service: 'mDL',
    serviceTypes: `${COMMISSION}/SvcType`,
    fixed: {
      StatusDeterminationApproach: `${COMMISSION}/mDLProvidersListStatusDetn`,
      SchemeTypeCommunityRules: `${COMMISSION}/schemerules`,
    },
  },
};

export const LIST_TYPES: readonly string[] = Object.keys(PROFILES);

/** A list of registers, not of issuers. */
const REGISTERS = `${ETSI}/LoTEType/EURegistrarsAndRegistersList`;

function european(
  service: string,
  provider: string,
  { approach, rules } = { approach: `${provider}sList`, rules: `${provider}sList` },
): ListProfile {
  return {
    service,
    serviceTypes: `${ETSI}/SvcType/${service}`,
    fixed: {
      StatusDeterminationApproach: `${ETSI}/${approach}/StatusDetn/EU`,
      SchemeTypeCommunityRules: `${ETSI}/${rules}/schemerules/EU`,
      entityUri: `${ETSI}/ListOfTrustedEntities/${provider}`,
    },
  };
}

function withStatuses(profile: ListProfile): ListProfile {
  const { fixed } = profile;
  if (fixed === undefined) return profile;
  const statuses = `${ETSI}/PubEAAProvidersList/SvcStatus`;
  return { ...profile, fixed: { ...fixed, statuses, HistoricalInformationPeriod: RETAIN_FOREVER } };
}

export function profileOf(type: string | undefined): ListProfile {
  return PROFILES[type ?? ''] ?? ATTESTATIONS;
}

/** True if lists of this type contain issuance and revocation services. */
export function isListOfIssuers(type: string): boolean {
  return type !== REGISTERS;
}

export function serviceType({ serviceTypes }: ListProfile, purpose: 'Issuance' | 'Revocation'): string {
  return `${serviceTypes}/${purpose}`;
}
