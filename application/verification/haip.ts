import { invalidInput } from '../../domain/shared/failure.ts';
import { holdsTo } from '../../domain/shared/finding.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** Whether a tenant holds what wallets present, and what it asks them, to HAIP 1.0 in every detail; each profile does. */
export function holdsToHaip({ profile }: TenantConfiguration): boolean {
  return profile !== null;
}

/** Whether only algorithms count that the ECCG agreed to (ARF 3.0 OIA_03). */
export function holdsToAgreed({ profile }: TenantConfiguration): boolean {
  return holdsTo(profile, 'eu');
}

/**
 * Whether the result of a request waits for the browser (OpenID4VP 1.0 section 14.3, HAIP 1.0 section 5.1). HAIP wants it
 * wherever a browser is sent back, and the browser to be sent back always.
 * @throws Failure `invalid_input` when it is wanted and no browser would come.
 */
export function awaitsCode(
  configured: TenantConfiguration,
  { requireResponseCode }: PresentationConfiguration,
  redirectUri: string | undefined,
): boolean {
  const isHaip = holdsToHaip(configured);
  if (redirectUri !== undefined) return requireResponseCode === true || isHaip;
  if (requireResponseCode !== true && !isHaip) return false;
  const message = isHaip
    ? 'The profile of the tenant (HAIP 1.0 section 5.1) wants the browser to be sent back: give redirectUri here or in the configuration.'
    : 'The configuration waits for the response_code, so the browser has to be sent somewhere.';
  throw invalidInput('redirectUri', message);
}
