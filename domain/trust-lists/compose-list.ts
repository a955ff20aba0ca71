import type { KeyChain } from '../keys/key-chain.ts';
import { defined } from '../shared/defined.ts';
import { invalidInput } from '../shared/failure.ts';
import type { Json, JsonObject } from '../shared/json.ts';
import { addressOf, type ListOwner, type PostalAddress } from './entity-address.ts';
import { type CertificateSource, certificatesOf, sourcesOf } from './entity-certificates.ts';
import { statusProperties } from './entity-status.ts';
import type { TrustListConfiguration, TrustListEntity } from './list-configuration.ts';
import { operatorAddress } from './list-operator.ts';
import { type ListProfile, profileOf, serviceType } from './list-profiles.ts';

export type Composition = {
  readonly configuration: Pick<TrustListConfiguration, 'entities' | 'data'>;
  readonly chains: readonly KeyChain[];
  /** The tenant, which is the operator unless the configuration names another one. */
  readonly owner: ListOwner;
  /** Page for entities without their own. */
  readonly tenantUri: string;
  readonly sequenceNumber: number;
  readonly issuedAt: Date;
  readonly nextUpdate: Date;
};

/** The version of the format (TS 119 602 section 6.3.1). */
const VERSION = 1;
const EUROPE = 'EU';

/**
 * The document of a list (TS 119 602 section 6) before its signature. Without scheme information it is an implicit list with mandatory
 * properties only.
 * @throws Failure `invalid_input` for a missing key chain of an entity.
 */
export function composeList(composition: Composition): JsonObject {
  const { configuration, sequenceNumber, issuedAt, nextUpdate, owner } = composition;
  const scheme = configuration.data?.LoTE?.ListAndSchemeInformation ?? {};
  const profile = profileOf(scheme.LoTEType);
  const { fixed } = profile;
  const entities = configuration.entities.map((entity, index) => entityDocument(entity, `entities.${index}`, profile, composition));
  return {
    LoTE: defined({
      ListAndSchemeInformation: defined({
        LoTEVersionIdentifier: VERSION,
        LoTESequenceNumber: sequenceNumber,
        LoTEType: scheme.LoTEType,
        SchemeOperatorName: scheme.SchemeOperatorName ?? [{ lang: 'en', value: owner.organization ?? owner.name }],
        SchemeOperatorAddress: (fixed === undefined ? scheme.SchemeOperatorAddress : operatorAddress(scheme, owner)) as Json | undefined,
        SchemeName: scheme.SchemeName,
        SchemeInformationURI: scheme.SchemeInformationURI,
        StatusDeterminationApproach: scheme.StatusDeterminationApproach ?? fixed?.StatusDeterminationApproach,
        SchemeTypeCommunityRules: scheme.SchemeTypeCommunityRules ?? (fixed && [{ lang: 'en', uriValue: fixed.SchemeTypeCommunityRules }]),
        SchemeTerritory: scheme.SchemeTerritory ?? (fixed && EUROPE),
        PolicyOrLegalNotice: scheme.PolicyOrLegalNotice,
        HistoricalInformationPeriod: scheme.HistoricalInformationPeriod ?? fixed?.HistoricalInformationPeriod,
        ListIssueDateTime: dateTime(issuedAt),
        NextUpdate: dateTime(nextUpdate),
        DistributionPoints: scheme.DistributionPoints,
      }),
      // TS 119 602 section 6.4.0: absent for an empty list
      TrustedEntitiesList: entities.length === 0 ? undefined : entities,
    }),
  };
}

function entityDocument(entity: TrustListEntity, path: string, profile: ListProfile, composition: Composition): JsonObject {
  return {
    TrustedEntityInformation: informationOf(entity, profile, composition),
    TrustedEntityServices: sourcesOf(entity).map((source) => serviceDocument({ entity, source, path }, profile, composition.chains)),
  };
}

/** TS 119 602 section 6.5. Pages and addresses are mandatory, so the tenant's are the default. */
function informationOf(entity: TrustListEntity, { fixed }: ListProfile, { chains, owner, tenantUri }: Composition): JsonObject {
  const { name, lang = 'en', uri = tenantUri, contactUri } = entity.info;
  const address = addressOf(entity, chains, owner);
  const { country } = address;
  const contact = contactUri ?? (entity.type === 'internal' ? owner.contact : undefined) ?? uri;
  const page = (uriValue: string) => ({ lang, uriValue });
  const descriptionUris = fixed?.entityUri === undefined || country === undefined ? [] : [`${fixed.entityUri}/${country}`];
  return {
    TEName: [{ lang, value: name }],
    TEAddress: defined({ TEPostalAddress: postalAddress(address, lang), TEElectronicAddress: [page(contact)] }),
    TEInformationURI: [...descriptionUris, uri].map(page),
  };
}

function postalAddress(address: PostalAddress, lang: string): Json | undefined {
  const lines = defined({
    StreetAddress: address.streetAddress,
    Locality: address.locality,
    StateOrProvince: address.stateOrProvince,
    PostalCode: address.postalCode,
    Country: address.country,
  });
  return Object.keys(lines).length === 0 ? undefined : [{ lang, ...lines }];
}

type ServiceEntry = { readonly entity: TrustListEntity; readonly source: CertificateSource; readonly path: string };

/** TS 119 602 section 6.6 */
function serviceDocument({ entity, source, path }: ServiceEntry, profile: ListProfile, chains: readonly KeyChain[]): JsonObject {
  const certificates = certificatesOf(source, chains);
  if (certificates === undefined) throw invalidInput(`${path}.${source.member}`, 'The referenced certificate no longer exists.');
  return {
    ServiceInformation: {
      ServiceTypeIdentifier: serviceType(profile, source.purpose),
      ServiceName: [{ lang: 'en', value: `${profile.service}-${source.purpose}-Service` }],
      ServiceDigitalIdentity: { X509Certificates: certificates.map((val) => ({ val })) },
      ...statusProperties(entity, profile),
    },
  };
}

/** TS 119 602 section 6.1.3: whole seconds */
function dateTime(time: Date): string {
  return time.toISOString().replace(/\.\d{3}Z$/, 'Z');
}
