import type { CredentialPreview } from '../../domain/issuance/credential-preview.ts';
import type { Authorization } from '../../domain/oauth/authorization.ts';
import { redirectDestination } from '../../domain/oauth/authorization-response.ts';
import type { TenantBranding } from '../../domain/tenants/branding.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { tenantBranding } from '../tenants/tenant-branding.ts';
import { previewCredentials } from './preview-credentials.ts';

/** Content of a page that asks the user for consent to the issuance to a wallet. */
export type ConsentSubject = {
  readonly branding: TenantBranding;
  readonly credentials: readonly CredentialPreview[];
  readonly clientId: string;
  /** True if the wallet is authenticated; otherwise its name is an unverified claim. */
  readonly isVerified: boolean;
  /** Origin or app that the response goes to. */
  readonly destination: string;
};

/** A consent page: its content, and the form fields that are sent back with `decision`. */
export type Consent = ConsentSubject & {
  /** Address of the form. */
  readonly action: string;
  readonly fields: Readonly<Record<string, string>>;
};

export async function consentSubject(tenant: TenantConfiguration, { request, holder }: Authorization): Promise<ConsentSubject> {
  if (request.redirectUri === undefined) throw new Error('a page of an authorization that goes nowhere');
  return {
    branding: await tenantBranding(tenant),
    credentials: await previewCredentials(tenant, request.credentialConfigurationIds),
    clientId: request.clientId,
    isVerified: holder.authenticated === true,
    destination: redirectDestination(request.redirectUri),
  };
}
