import { type Session, statusAt } from '../../domain/sessions/session.ts';
import type { PublicId, SessionId } from '../../domain/shared/ids.ts';
import type { Random } from '../ports/random.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { TenantView } from './tenant-views.ts';

/**
 * The session behind an `issuer_state` (OpenID4VCI 1.0 section 5.1.3): it may be used by more than one wallet, as long
 * as the offer lasts. A pre-authorized offer is none: its code would be worth nothing.
 */
export function isOffered(
  session: Session | undefined,
  configurationIds: readonly string[],
  now: Date,
): session is Session {
  if (session?.request?.kind !== 'issuance') return false;
  if (session.request.offerRequest['flow'] !== 'authorization_code') return false;
  const status = statusAt(session, now);
  if (status === 'failed' || status === 'expired') return false;
  return configurationIds.every((id) => session.configurationIds.includes(id));
}

/** A session for a wallet that began by itself; its claims come from the configuration or its webhook. */
export async function walletInitiatedSession(
  ports: { readonly random: Random; readonly settings: ServiceSettings },
  view: TenantView,
  configurationIds: readonly string[],
  now: Date,
  publicId?: PublicId,
): Promise<Session> {
  const { random, settings } = ports;
  const ttl = (await view.tenant()).sessionConfig?.ttlSeconds ?? settings.sessionTtlSeconds;
  return {
    tenantId: view.tenantId,
    id: random.token() as SessionId,
    publicId: publicId ?? (random.token() as PublicId),
    kind: 'issuance',
    status: 'fetched',
    version: 1,
    createdAt: now,
    updatedAt: now,
    expiresAt: new Date(now.getTime() + ttl * 1000),
    configurationIds,
    useDcApi: false,
    request: {
      kind: 'issuance',
      offerRequest: { flow: 'authorization_code', credentialConfigurationIds: configurationIds },
      offer: {},
      offerUrl: '',
      credentialClaims: {},
    },
    outcome: null,
    issuedMask: 0,
    claimedAt: null,
  };
}
