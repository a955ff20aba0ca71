import { defaultOfferServer } from '../../domain/issuance/issuance-configuration.ts';
import { type Session, type SessionOutcome, statusAt } from '../../domain/sessions/session.ts';
import type { PublicId } from '../../domain/shared/ids.ts';
import { isSameIssuer } from '../../domain/shared/web-address.ts';
import type { Random } from '../ports/random.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import { newSession, sessionSeconds } from '../sessions/new-session.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/**
 * True for the session of an `issuer_state` (OpenID4VCI 1.0 section 5.1.3), which several wallets may use as long as the offer
 * lasts. A pre-authorized offer does not qualify: it would bypass the transaction code.
 */
export function isOffered(session: Session | undefined, configurationIds: readonly string[], now: Date): session is Session {
  if (session?.request?.kind !== 'issuance') return false;
  if (session.request.offerRequest['flow'] !== 'authorization_code') return false;
  const status = statusAt(session, now);
  if (status === 'failed' || status === 'expired') return false;
  return configurationIds.every((id) => session.configurationIds.includes(id));
}

/**
 * True if an authorization server may issue codes for the session. A session that names a server, because its user has to log in there,
 * is only for that one: the built-in server does not identify users. Otherwise it is for the preferred server of the tenant.
 * @param server its issuer.
 */
export async function isForServer(tenant: TenantConfiguration, { request, configurationIds }: Session, server: string): Promise<boolean> {
  if (request?.kind !== 'issuance') return false;
  const { flow, authorization_server: namedServer } = request.offerRequest;
  if (flow !== 'authorization_code') return false;
  if (namedServer !== undefined) return isSameIssuer(String(namedServer), server);
  const offeredConfigurations = (await tenant.credentialConfigurations()).filter(({ id }) => configurationIds.includes(id));
  const isInteractive = offeredConfigurations.some(({ iaeActions }) => (iaeActions?.length ?? 0) > 0);
  return isSameIssuer(defaultOfferServer(tenant.issuer, await tenant.issuance(), isInteractive), server);
}

/**
 * A wallet-initiated session; its claims come from the configuration or its webhook.
 * @param options `server`: issuer of the authorization server where it began, the only one that may use it.
 */
export async function walletInitiatedSession(
  ports: { readonly random: Random; readonly settings: ServiceSettings },
  tenant: TenantConfiguration,
  configurationIds: readonly string[],
  now: Date,
  options: { readonly server: string; readonly publicId?: PublicId; readonly outcome?: SessionOutcome },
): Promise<Session> {
  const { random, settings } = ports;
  const ttl = await sessionSeconds(tenant, settings);
  return newSession(random, {
    tenantId: tenant.tenantId,
    publicId: options.publicId ?? (random.token() as PublicId),
    kind: 'issuance',
    status: 'fetched',
    createdAt: now,
    expiresAt: new Date(now.getTime() + ttl * 1000),
    configurationIds,
    request: {
      kind: 'issuance',
      offerRequest: { flow: 'authorization_code', credentialConfigurationIds: configurationIds, authorization_server: options.server },
      offer: {},
      offerUrl: '',
      credentialClaims: {},
    },
    outcome: options.outcome ?? null,
  });
}
