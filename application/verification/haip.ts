import { invalidInput } from '../../domain/shared/failure.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';

/** Whether a tenant holds what wallets present, and what it asks them, to HAIP 1.0 in every detail. */
export async function holdsToHaip(_configured: TenantConfiguration): Promise<boolean> {
  return false;
}

/**
 * Whether the result of a request waits for the browser (OpenID4VP 1.0 section 14.3, HAIP 1.0 section 5.1). HAIP wants it
 * wherever a browser is sent back.
 * @throws Failure `invalid_input` when the configuration wants it and no browser would come.
 */
export async function awaitsCode(
  configured: TenantConfiguration,
  { requireResponseCode }: PresentationConfiguration,
  redirectUri: string | undefined,
): Promise<boolean> {
  if (redirectUri !== undefined) return requireResponseCode === true || (await holdsToHaip(configured));
  if (requireResponseCode !== true) return false;
  const message = 'The configuration waits for the response_code, so the browser has to be sent somewhere.';
  throw invalidInput('redirectUri', message);
}
