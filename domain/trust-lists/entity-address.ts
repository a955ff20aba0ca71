import { parseCertificate } from '../formats/der/certificate.ts';
import { attributesOf } from '../formats/der/name.ts';
import type { KeyChain } from '../keys/key-chain.ts';
import { invalidFields } from '../shared/failure.ts';
import { assertConformsToProfile, type Finding, type Profile } from '../shared/finding.ts';
import { isJsonObject, type JsonObject } from '../shared/json.ts';
import type { Organization } from '../tenants/organization.ts';
import { certificatesOf, sourcesOf } from './entity-certificates.ts';
import type { TrustListEntity } from './list-configuration.ts';
import { profileOf } from './list-profiles.ts';

/** The tenant that publishes the list. */
export type ListOwner = Organization & { readonly name: string };

export type PostalAddress = {
  readonly streetAddress?: string | undefined;
  readonly locality?: string | undefined;
  readonly stateOrProvince?: string | undefined;
  readonly postalCode?: string | undefined;
  readonly country?: string | undefined;
};

/** Attributes of a subject (X.520). */
const ATTRIBUTES = {
  streetAddress: '2.5.4.9',
  locality: '2.5.4.7',
  stateOrProvince: '2.5.4.8',
  postalCode: '2.5.4.17',
  country: '2.5.4.6',
} as const;

/**
 * The address of an entity: configured; for an internal entity that of the tenant; otherwise that of its certificate. Street and locality
 * always come from the same source, and from the same country.
 */
export function addressOf(entity: TrustListEntity, chains: readonly KeyChain[], owner: ListOwner): PostalAddress {
  const { streetAddress, locality, postalCode, country } = entity.info;
  const configuredAddress = { streetAddress, locality, postalCode, country };
  const defaultAddresses = [entity.type === 'internal' ? ownerAddress(owner) : {}, certifiedAddress(entity, chains)];
  const countries = [country, ...defaultAddresses.map((address) => address.country)];
  const effectiveCountry = countries.find((countryCode) => countryCode !== undefined);
  const isPartial = streetAddress === undefined && locality === undefined && postalCode === undefined;
  const defaultAddress = defaultAddresses.find(
    (address) => address.streetAddress !== undefined && (address.country ?? effectiveCountry) === effectiveCountry,
  );
  return { ...(isPartial && defaultAddress !== undefined ? defaultAddress : configuredAddress), country: effectiveCountry };
}

export function ownerAddress({ address, country }: Organization): PostalAddress {
  return {
    streetAddress: address?.streetAddress,
    locality: address?.locality ?? undefined,
    stateOrProvince: address?.stateOrProvince ?? undefined,
    postalCode: address?.postalCode ?? undefined,
    country: address?.country ?? country ?? undefined,
  };
}

function certifiedAddress(entity: TrustListEntity, chains: readonly KeyChain[]): PostalAddress {
  const [source] = sourcesOf(entity);
  const [der] = (source && certificatesOf(source, chains)) ?? [];
  const subject = der === undefined ? undefined : parseCertificate(Buffer.from(der, 'base64'))?.subject;
  if (subject === undefined) return {};
  const name = Buffer.from(subject, 'hex');
  const textOf = (member: keyof typeof ATTRIBUTES) => {
    const [text] = attributesOf(name, ATTRIBUTES[member]);
    return text === undefined || text.startsWith('#') ? undefined : text;
  };
  const country = textOf('country');
  return {
    streetAddress: textOf('streetAddress'),
    locality: textOf('locality'),
    stateOrProvince: textOf('stateOrProvince'),
    postalCode: textOf('postalCode'),
    country: country !== undefined && /^[A-Z]{2}$/.test(country) ? country : undefined,
  };
}

/** Required properties of a postal address (TS 119 602 section 6.5.3), by their names in a document and in a request. */
const REQUIRED = { StreetAddress: 'streetAddress', Country: 'country' } as const;

/**
 * Required address properties that a composed list lacks: some verifiers reject a whole list for one such entity.
 * @param document before its signature; its entities have the order of the configuration.
 */
export function findAddressProblems(document: JsonObject): Finding[] {
  const list = objectOf(document['LoTE']);
  const entities = Array.isArray(list['TrustedEntitiesList']) ? list['TrustedEntitiesList'] : [];
  return entities.flatMap((entity, index) => {
    const information = objectOf(objectOf(entity)['TrustedEntityInformation']);
    const { TEAddress, TEName } = information;
    const postal = objectOf(firstOf(objectOf(TEAddress)['TEPostalAddress']));
    const name = objectOf(firstOf(TEName))['value'];
    return Object.entries(REQUIRED)
      .filter(([property]) => postal[property] === undefined)
      .map(([, property]) => ({
        rule: 'TS 119 602 section 6.5.3',
        member: `entities.${index}.info.${property}`,
        concerns: 'readers of the list',
        message: `the list contains no ${property} of the entity "${name}", and some readers reject the whole list for that`,
        change: `set ${property} of the entity, or the address of the tenant for its own entities`,
        refusedBy: ['eu' as const],
      }));
  });
}

/**
 * Lists of a European type, and lists of tenants with the profile `eu`, need complete addresses.
 * @throws Failure `invalid_input` with each missing property of each entity.
 */
export function assertAddressesComplete(document: JsonObject, profile: Profile | null): void {
  const scheme = objectOf(objectOf(document['LoTE'])['ListAndSchemeInformation']);
  const { LoTEType: type } = scheme;
  const isEuropean = typeof type === 'string' && profileOf(type).fixed !== undefined;
  const faults = findAddressProblems(document);
  if (!isEuropean) {
    assertConformsToProfile(profile, faults);
    return;
  }
  const errors = faults.map(({ member, message, change }) => ({ path: member, message: `${message}; ${change}` }));
  if (errors.length > 0) throw invalidFields(errors);
}

function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

function firstOf(value: unknown): unknown {
  return Array.isArray(value) ? value[0] : undefined;
}
