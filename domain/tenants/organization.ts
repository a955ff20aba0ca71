import { strictObject, z } from 'zod';
import { Country, Line } from '../shared/bounds.ts';
import { ContactUri } from '../shared/web-address.ts';

/** RFC 5280 appendix A.1, `ub-organization-name`. */
const ORGANIZATION_MAX = 64;

export const TenantAddress = strictObject({
  streetAddress: Line,
  locality: Line.nullish(),
  stateOrProvince: Line.nullish(),
  postalCode: Line.nullish(),
  country: Country.nullish().describe('That of the tenant unless stated'),
}).meta({ id: 'TenantAddress' });
export type TenantAddress = z.infer<typeof TenantAddress>;

/** The organization behind a tenant, for certificates and trust lists. */
export const organizationProperties = {
  organization: z
    .string()
    .trim()
    .min(1)
    .max(ORGANIZATION_MAX)
    .nullish()
    .describe('Its legal name, in certificates made from now on and in trust lists; `name` unless stated'),
  organizationIdentifier: z
    .string()
    .regex(/^(?:[A-Z]{3}[A-Z]{2}|[A-Z]{2}:[A-Z]{2})-[!-~]{1,64}$/, 'a registered identifier, such as VATDE-123456789')
    .nullish()
    .describe(
      'Under which it is registered (ETSI EN 319 412-1 section 5.1.4), such as `VATDE-123456789`, in access certificates made from now on',
    ),
  country: Country.nullish().describe(
    'Where it is at home (ISO 3166-1), in certificates made from now on; readers of driving licences demand it',
  ),
  contact: ContactUri.nullish().describe(
    'A page, mail address (`mailto:`) or telephone (`tel:`) at which it is reached, in certificates made from now on and in trust lists',
  ),
  address: TenantAddress.nullish().describe('Where it is found, for trust lists'),
};

export type Organization = {
  readonly organization: string | null;
  readonly organizationIdentifier: string | null;
  readonly country: string | null;
  readonly contact: string | null;
  readonly address: TenantAddress | null;
};

type OrganizationChange = { readonly [Member in keyof Organization]?: Organization[Member] | undefined };

export const NO_ORGANIZATION: Organization = {
  organization: null,
  organizationIdentifier: null,
  country: null,
  contact: null,
  address: null,
};

/** Omitted properties are retained. */
export function mergeOrganization(storedOrganization: Organization, change: OrganizationChange): Organization {
  const merged = <Member extends keyof Organization>(member: Member): Organization[Member] => {
    const changedValue = change[member];
    return changedValue === undefined ? storedOrganization[member] : changedValue;
  };
  return {
    organization: merged('organization'),
    organizationIdentifier: merged('organizationIdentifier'),
    country: merged('country'),
    contact: merged('contact'),
    address: merged('address'),
  };
}

/** The tenant's name in certificates and lists. */
export function organizationName({ organization, name }: { readonly organization: string | null; readonly name: string }): string {
  return organization ?? [...name].slice(0, ORGANIZATION_MAX).join('').trim();
}
