import { invalidInput } from '../../domain/shared/failure.ts';
import { includesProfile } from '../../domain/shared/finding.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** True if the tenant's requests and presentations must comply with HAIP 1.0; every profile requires that. */
export function requiresHaip({ profile }: TenantConfiguration): boolean {
  return profile !== null;
}

/** True if only algorithms are accepted that the ECCG agreed to (ARF 3.0 OIA_03). */
export function requiresAgreedAlgorithms({ profile }: TenantConfiguration): boolean {
  return includesProfile(profile, 'eu');
}

/**
 * True if the result of a request waits for the browser (OpenID4VP 1.0 section 14.3, HAIP 1.0 section 5.1). HAIP requires that
 * for every redirect, and a redirect for every response.
 * @throws Failure `invalid_input` when it is required and there is no redirect.
 */
export function awaitsCode(
  tenant: TenantConfiguration,
  { requireResponseCode }: PresentationConfiguration,
  redirectUri: string | undefined,
): boolean {
  const isHaip = requiresHaip(tenant);
  if (redirectUri !== undefined) return requireResponseCode === true || isHaip;
  if (requireResponseCode !== true && !isHaip) return false;
  const message = isHaip
    ? 'The profile of the tenant (HAIP 1.0 section 5.1) requires a redirect of the browser: set redirectUri here or in the configuration.'
    : 'The configuration waits for the response_code, so the browser requires a redirectUri.';
  throw invalidInput('redirectUri', message);
}
