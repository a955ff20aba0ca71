import type { ShownCredential } from '../../domain/issuance/shown-credential.ts';
import type { Authorization } from '../../domain/oauth/authorization.ts';
import { destinationOf } from '../../domain/oauth/authorization-response.ts';
import type { TenantLook } from '../../domain/tenants/look.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { tenantLook } from '../tenants/tenant-look.ts';
import { shownCredentials } from './shown-credentials.ts';

/** What a page tells the user who is asked whether a wallet shall have credentials. */
export type ConsentSubject = {
  readonly look: TenantLook;
  readonly credentials: readonly ShownCredential[];
  readonly clientId: string;
  /** Whether the wallet proved who it is; what it says of itself is a mere claim otherwise. */
  readonly isVerified: boolean;
  /** Where the browser goes with the answer. */
  readonly destination: string;
};

/** What an approval page shows, and what it sends back with `decision`. */
export type Consent = ConsentSubject & {
  /** Address that the answer goes to. */
  readonly action: string;
  readonly fields: Readonly<Record<string, string>>;
};

/** Says who asks for what, and where it would go. */
export async function consentSubject(configured: TenantConfiguration, { request, holder }: Authorization): Promise<ConsentSubject> {
  if (request.redirectUri === undefined) throw new Error('a page of an authorization that goes nowhere');
  return {
    look: await tenantLook(configured),
    credentials: await shownCredentials(configured, request.credentialConfigurationIds),
    clientId: request.clientId,
    isVerified: holder.authenticated === true,
    destination: destinationOf(request.redirectUri),
  };
}
