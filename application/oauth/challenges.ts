import { makeChallenge, parseChallenge } from '../../domain/oauth/challenge.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Random } from '../ports/random.ts';
import type { ServiceSettings } from '../ports/settings.ts';

type Ports = { readonly random: Random; readonly settings: ServiceSettings };

/** A challenge that says itself what it is for and when it was made: nothing is stored. */
export function freshChallenge({ random, settings }: Ports, tenantId: TenantId, purpose: string, now: Date): string {
  const [key] = settings.nonceKeys;
  if (key === undefined) throw new Error('no key for challenges');
  return makeChallenge(key, tenantId, purpose, now, random.bytes(10));
}

/** A challenge of one authorization server says nothing to another one of the same tenant. */
function purposeOf(issuer: string): string {
  return `attestation_challenge ${issuer}`;
}

/** @param issuer of the authorization server that will accept the challenge. */
export function attestationChallenge(ports: Ports, tenantId: TenantId, issuer: string, now: Date): string {
  return freshChallenge(ports, tenantId, purposeOf(issuer), now);
}

/** Whether a challenge is one of this service and has not ended. It may be used more than once until then. */
export function acceptsChallenge(
  settings: ServiceSettings,
  tenantId: TenantId,
  issuer: string,
  challenge: string | undefined,
  now: Date,
): boolean {
  if (challenge === undefined) return false;
  return parseChallenge(settings.nonceKeys, tenantId, purposeOf(issuer), now, challenge) !== undefined;
}
