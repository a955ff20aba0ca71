import type { Authorization } from '../../domain/oauth/authorization.ts';
import { destinationOf } from '../../domain/oauth/authorization-response.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';

/** What a page tells the user who is asked whether a wallet shall have credentials. */
export type ConsentSubject = {
  readonly issuerName: string;
  /** Display names. */
  readonly credentials: readonly string[];
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
export async function consentSubject(
  configured: TenantConfiguration,
  { request, holder }: Authorization,
): Promise<ConsentSubject> {
  if (request.redirectUri === undefined) throw new Error('a page of an authorization that goes nowhere');
  const configurations = await configured.credentialConfigurations();
  return {
    issuerName: (await configured.issuance()).display[0]?.name ?? (await configured.tenant()).name,
    credentials: request.credentialConfigurationIds.map(
      (id) => configurations.find((entry) => entry.id === id)?.config.display?.[0]?.name ?? id,
    ),
    clientId: request.clientId,
    isVerified: holder.authenticated === true,
    destination: destinationOf(request.redirectUri),
  };
}
