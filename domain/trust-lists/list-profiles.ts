const ETSI = 'http://uri.etsi.org/19602';

/** What the type of a list says about what is in it. */
export type ListProfile = {
  /** Of what is issued and revoked; part of names and types of services. */
  readonly service: string;
  /** What the standard fixes for a list of this type, where it does. */
  readonly fixed?: {
    readonly StatusDeterminationApproach: string;
    readonly SchemeTypeCommunityRules: string;
    /** Begins the address by which an entity of this list is described; the country follows. */
    readonly entityUri: string;
  };
};

/** Lists of issuers of attestations of any kind: the type is left open, or one of the operator's own. */
const ATTESTATIONS: ListProfile = { service: 'EAA' };

/** TS 119 602 annexes D to H. The annex of registration certificates misspells its own approach. */
const PROFILES: Readonly<Record<string, ListProfile>> = {
  [`${ETSI}/LoTEType/EUPIDProvidersList`]: european('PID', 'PIDProvider', {
    approach: 'PIDProvidersList',
    rules: 'PIDProviders',
  }),
  [`${ETSI}/LoTEType/EUWalletProvidersList`]: european('WalletSolution', 'WalletProvider'),
  [`${ETSI}/LoTEType/EUWRPACProvidersList`]: european('WRPAC', 'WRPACProvider'),
  [`${ETSI}/LoTEType/EUWRPRCProvidersList`]: european('WRPRC', 'WRPRCProvider', {
    approach: 'WRPRCrovidersList',
    rules: 'WRPRCProvidersList',
  }),
  [`${ETSI}/LoTEType/EUPubEAAProvidersList`]: european('PubEAA', 'PubEAAProvider'),
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
    fixed: {
      StatusDeterminationApproach: `${ETSI}/${approach}/StatusDetn/EU`,
      SchemeTypeCommunityRules: `${ETSI}/${rules}/schemerules/EU`,
      entityUri: `${ETSI}/ListOfTrustedEntities/${provider}`,
    },
  };
}

export function profileOf(type: string | undefined): ListProfile {
  return PROFILES[type ?? ''] ?? ATTESTATIONS;
}

/** Whether entities that issue and revoke something can stand in a list of this type. */
export function isListOfIssuers(type: string): boolean {
  return type !== REGISTERS;
}

export function serviceType({ service }: ListProfile, purpose: 'Issuance' | 'Revocation'): string {
  return `${ETSI}/SvcType/${service}/${purpose}`;
}
