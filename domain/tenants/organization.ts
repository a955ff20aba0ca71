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
  country: Country.nullish().describe('Default: that of the tenant'),
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
    .describe('Its legal name, in certificates that are issued from now on and in trust lists. Default: `name`'),
  organizationIdentifier: z
    .string()
    .regex(/^(?:[A-Z]{3}[A-Z]{2}|[A-Z]{2}:[A-Z]{2})-[!-~]{1,64}$/, 'a registered identifier, such as VATDE-123456789')
    .nullish()
    .describe(
      'Its registered identifier (ETSI EN 319 412-1 section 5.1.4), such as `VATDE-123456789`, in access certificates that are issued from now on',
    ),
  country: Country.nullish().describe(
    'Its country (ISO 3166-1), in certificates that are issued from now on; readers of driving licences require it',
  ),
  contact: ContactUri.nullish().describe(
    'Contact: a page, mail address (`mailto:`) or telephone number (`tel:`), in certificates that are issued from now on and in trust lists',
  ),
  address: TenantAddress.nullish().describe('Postal address, for trust lists'),
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
