import { serverOfOffers } from '../../domain/issuance/issuance-configuration.ts';
import { type Session, type SessionOutcome, statusAt } from '../../domain/sessions/session.ts';
import type { PublicId } from '../../domain/shared/ids.ts';
import { isSameIssuer } from '../../domain/shared/web-address.ts';
import type { Random } from '../ports/random.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import { newSession, sessionSeconds } from '../sessions/new-session.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/**
 * The session behind an `issuer_state` (OpenID4VCI 1.0 section 5.1.3): it may be used by more than one wallet, as long
 * as the offer lasts. A pre-authorized offer is none: its code would be worth nothing.
 */
export function isOffered(session: Session | undefined, configurationIds: readonly string[], now: Date): session is Session {
  if (session?.request?.kind !== 'issuance') return false;
  if (session.request.offerRequest['flow'] !== 'authorization_code') return false;
  const status = statusAt(session, now);
  if (status === 'failed' || status === 'expired') return false;
  return configurationIds.every((id) => session.configurationIds.includes(id));
}

/**
 * Whether a session is for codes of this authorization server. One that names a server, because its user has to log in there, is for no
 * other: the built-in server asks nobody who they are. One that names none is for the server that the tenant prefers.
 * @param server its issuer.
 */
export async function isMeantFor(
  configured: TenantConfiguration,
  { request, configurationIds }: Session,
  server: string,
): Promise<boolean> {
  if (request?.kind !== 'issuance') return false;
  const { flow, authorization_server: named } = request.offerRequest;
  if (flow !== 'authorization_code') return false;
  if (named !== undefined) return isSameIssuer(String(named), server);
  const offered = (await configured.credentialConfigurations()).filter(({ id }) => configurationIds.includes(id));
  const isInteractive = offered.some(({ iaeActions }) => (iaeActions?.length ?? 0) > 0);
  return isSameIssuer(serverOfOffers(configured.issuer, await configured.issuance(), isInteractive), server);
}

/**
 * A session for a wallet that began by itself; its claims come from the configuration or its webhook.
 * @param at `server`: issuer of the authorization server where it began, the only one that it is good for.
 */
export async function walletInitiatedSession(
  ports: { readonly random: Random; readonly settings: ServiceSettings },
  configured: TenantConfiguration,
  configurationIds: readonly string[],
  now: Date,
  at: { readonly server: string; readonly publicId?: PublicId; readonly outcome?: SessionOutcome },
): Promise<Session> {
  const { random, settings } = ports;
  const ttl = await sessionSeconds(configured, settings);
  return newSession(random, {
    tenantId: configured.tenantId,
    publicId: at.publicId ?? (random.token() as PublicId),
    kind: 'issuance',
    status: 'fetched',
    createdAt: now,
    expiresAt: new Date(now.getTime() + ttl * 1000),
    configurationIds,
    request: {
      kind: 'issuance',
      offerRequest: { flow: 'authorization_code', credentialConfigurationIds: configurationIds, authorization_server: at.server },
      offer: {},
      offerUrl: '',
      credentialClaims: {},
    },
    outcome: at.outcome ?? null,
  });
}
