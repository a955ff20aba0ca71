import { offerPageId } from '../../domain/sessions/offer-page.ts';
import type { PublicId } from '../../domain/shared/ids.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** Path below the address of a tenant. */
export const OFFER_PAGE_PATH = 'offer';

/** The address of a page with the QR code and the link, for users. */
export function offerPageUrl(
  { nonceKeys }: Pick<ServiceSettings, 'nonceKeys'>,
  { issuer, tenantId }: TenantConfiguration,
  publicId: PublicId,
): string {
  const [key] = nonceKeys;
  if (key === undefined) throw new Error('no key for pages');
  return `${issuer}/${OFFER_PAGE_PATH}/${offerPageId(key, tenantId, publicId)}`;
}
