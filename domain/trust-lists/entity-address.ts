import { readCertificate } from '../formats/der/certificate.ts';
import { attributesOf } from '../formats/der/name.ts';
import type { KeyChain } from '../keys/key-chain.ts';
import { type FieldError, invalidFields } from '../shared/failure.ts';
import type { Organization } from '../tenants/organization.ts';
import { certificatesOf, sourcesOf } from './entity-certificates.ts';
import type { TrustListEntity } from './list-configuration.ts';

/** Whose list it is. */
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
 * Where an entity is found: what is said of it; for one of the tenant what the tenant says of itself; else what its
 * certificate does. A street never comes from elsewhere than its locality, nor one of another country.
 */
export function addressOf(
  entity: TrustListEntity,
  chains: readonly KeyChain[],
  owner: ListOwner,
): PostalAddress {
  const { streetAddress, locality, postalCode, country } = entity.info;
  const own = { streetAddress, locality, postalCode, country };
  const known = [entity.type === 'internal' ? ownerAddress(owner) : {}, certifiedAddress(entity, chains)];
  const countries = [country, ...known.map((address) => address.country)];
  const atHome = countries.find((each) => each !== undefined);
  const isPartial = streetAddress === undefined && locality === undefined && postalCode === undefined;
  const elsewhere = known.find(
    (address) => address.streetAddress !== undefined && (address.country ?? atHome) === atHome,
  );
  return { ...(isPartial && elsewhere !== undefined ? elsewhere : own), country: atHome };
}

/** What a tenant says of itself. */
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
  const subject = der === undefined ? undefined : readCertificate(Buffer.from(der, 'base64'))?.subject;
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

/**
 * Both are mandatory (TS 119 602 section 6.5.3), and readers refuse a whole list for one entity without.
 * @throws Failure `invalid_input` that names what is not known of each entity.
 */
export function assertAddressed(
  entities: readonly TrustListEntity[],
  chains: readonly KeyChain[],
  owner: ListOwner,
): void {
  const errors = entities.flatMap((entity, index): FieldError[] => {
    const address = addressOf(entity, chains, owner);
    const missing = (['streetAddress', 'country'] as const).filter((member) => address[member] === undefined);
    const silent =
      entity.type === 'internal'
        ? 'neither the tenant nor its certificate says it'
        : 'its certificate does not say it';
    return missing.map((member) => ({
      path: `entities.${index}.info.${member}`,
      message: `Give it: ${silent}, and readers refuse a list with an entity of which it is unknown.`,
    }));
  });
  if (errors.length > 0) throw invalidFields(errors);
}
