const ETSI = 'http://uri.etsi.org/19602';
const COMMISSION = 'http://trust.ec.europa.eu/lists/mDL';
/** TS 119 602 annex H: history is kept for ever. */
const FOR_EVER = 65_535;

/** What the type of a list says about what is in it. */
export type ListProfile = {
  /** Of what is issued and revoked; part of the names of services. */
  readonly service: string;
  /** Begins the types of services. */
  readonly serviceTypes: string;
  /** What the standard fixes for a list of this type, where it does. */
  readonly fixed?: {
    readonly StatusDeterminationApproach: string;
    readonly SchemeTypeCommunityRules: string;
    /** Begins the address by which an entity of this list is described; the country follows. */
    readonly entityUri?: string;
    /** Begins the status of each service; in all other lists being listed means being approved. */
    readonly statuses?: string;
    /** How long history is kept (TS 119 602 section 6.3.12); all other lists keep none. */
    readonly HistoricalInformationPeriod?: number;
  };
};

/** Lists of issuers of attestations of any kind: the type is left open, or one of the operator's own. */
const ATTESTATIONS: ListProfile = { service: 'EAA', serviceTypes: `${ETSI}/SvcType/EAA` };

/** TS 119 602 annexes D to H. The annex of registration certificates misspells its own approach. */
const PROFILES: Readonly<Record<string, ListProfile>> = {
  [`${ETSI}/LoTEType/EUPIDProvidersList`]: european('PID', 'PIDProvider', { approach: 'PIDProvidersList', rules: 'PIDProviders' }),
  [`${ETSI}/LoTEType/EUWalletProvidersList`]: european('WalletSolution', 'WalletProvider'),
  [`${ETSI}/LoTEType/EUWRPACProvidersList`]: european('WRPAC', 'WRPACProvider'),
  [`${ETSI}/LoTEType/EUWRPRCProvidersList`]: european('WRPRC', 'WRPRCProvider', {
    approach: 'WRPRCrovidersList',
    rules: 'WRPRCProvidersList',
  }),
  [`${ETSI}/LoTEType/EUPubEAAProvidersList`]: withStatuses(european('PubEAA', 'PubEAAProvider')),
  // The Commission's own list of those who issue driving licences; the standard has none.
  [`${COMMISSION}/mDLProvidersListType`]: {
    service: 'mDL',
    serviceTypes: `${COMMISSION}/SvcType`,
    fixed: {
      StatusDeterminationApproach: `${COMMISSION}/mDLProvidersListStatusDetn`,
      SchemeTypeCommunityRules: `${COMMISSION}/schemerules`,
    },
  },
};

/** Types of lists that the standards know. */
export const LIST_TYPES: readonly string[] = Object.keys(PROFILES);

/** Names registers, not issuers. */
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
  return { ...profile, fixed: { ...fixed, statuses, HistoricalInformationPeriod: FOR_EVER } };
}

export function profileOf(type: string | undefined): ListProfile {
  return PROFILES[type ?? ''] ?? ATTESTATIONS;
}

/** Whether entities that issue and revoke something can stand in a list of this type. */
export function isListOfIssuers(type: string): boolean {
  return type !== REGISTERS;
}

export function serviceType({ serviceTypes }: ListProfile, purpose: 'Issuance' | 'Revocation'): string {
  return `${serviceTypes}/${purpose}`;
}
