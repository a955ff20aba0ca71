import { createChallenge, parseChallenge } from '../../domain/oauth/challenge.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Random } from '../ports/random.ts';
import type { ServiceSettings } from '../ports/settings.ts';

type Ports = { readonly random: Random; readonly settings: ServiceSettings };

/** A challenge that contains its purpose and creation time, so that nothing is stored. */
export function issueChallenge({ random, settings }: Ports, tenantId: TenantId, purpose: string, now: Date): string {
  const [key] = settings.nonceKeys;
  if (key === undefined) throw new Error('no key for challenges');
  return createChallenge(key, tenantId, purpose, now, random.bytes(10));
}

/** The purpose contains the issuer: a challenge of one authorization server is invalid at another one of the same tenant. */
function purposeOf(issuer: string): string {
  return `attestation_challenge ${issuer}`;
}

/** @param issuer of the authorization server that will accept the challenge. */
export function attestationChallenge(ports: Ports, tenantId: TenantId, issuer: string, now: Date): string {
  return issueChallenge(ports, tenantId, purposeOf(issuer), now);
}

/** True for an unexpired challenge of this service. It may be used more than once until it expires. */
export function isValidChallenge(
  settings: ServiceSettings,
  tenantId: TenantId,
  issuer: string,
  challenge: string | undefined,
  now: Date,
): boolean {
  if (challenge === undefined) return false;
  return parseChallenge(settings.nonceKeys, tenantId, purposeOf(issuer), now, challenge) !== undefined;
}
