import { createSecretKey } from 'node:crypto';
import { deriveKey } from '../../adapters/crypto/cipher.ts';
import { LocalAccessTokens } from '../../adapters/identity/local-access-tokens.ts';
import { OidcAccessTokens } from '../../adapters/identity/oidc-access-tokens.ts';
import { RemoteAuthorizationServers } from '../../adapters/remote/authorization-servers.ts';
import { Outgoing } from '../../adapters/remote/outgoing.ts';
import { RedirectedRemote } from '../../adapters/remote/redirected-remote.ts';
import type { AccessTokens } from '../../application/ports/access-tokens.ts';
import type { Clock } from '../../application/ports/clock.ts';
import type { Log } from '../../application/ports/log.ts';
import type { Probe } from '../../application/ports/probe.ts';
import type { Random } from '../../application/ports/random.ts';
import type { Settings } from '../../config/settings.ts';

type Ports = { readonly clock: Clock; readonly random: Random; readonly log: Log };

export type Identity = { readonly accessTokens: AccessTokens; readonly probe?: Probe; close(): Promise<void> };

/** Opens the issuer of the access tokens of the administrative API: this service, or a provider that `OIDC` names. */
export function openIdentity(settings: Settings, ports: Ports): Identity {
  const { OIDC: issuer } = settings;
  return issuer === undefined ? localIdentity(settings, ports) : externalIdentity(settings, issuer, ports);
}

/** Every client may read the health, and each login is work for the provider. */
const LOGIN_REST_MS = 10_000;

function localIdentity(settings: Settings, ports: Ports): Identity {
  // A former secret only opens data that were sealed under it: an attacker who finds it cannot issue tokens.
  const [presentSecret = ''] = settings.MASTER_SECRET;
  const key = createSecretKey(deriveKey(presentSecret, 'vidimus/access-token'));
  const tokens = { key, issuer: settings.JWT_ISSUER, lifetimeSeconds: settings.JWT_EXPIRES_IN };
  return { accessTokens: new LocalAccessTokens(ports, tokens), close: async () => {} };
}

function externalIdentity(settings: Settings, issuer: string, { clock, log }: Ports): Identity {
  const internalIssuer = settings.OIDC_INTERNAL_ISSUER_URL ?? issuer;
  // The operator named the provider, so it may be called at any address. Addresses that tenants configure are restricted.
  const provider = new URL(internalIssuer);
  const port = provider.port === '' ? '' : `:${provider.port}`;
  const outgoing = new Outgoing({ allow: [...settings.OUTBOUND_ALLOW, provider.hostname + port] });
  const withoutTrailingSlash = (address: string) => address.replace(/\/+$/, '');
  const remote = new RedirectedRemote(outgoing, {
    published: withoutTrailingSlash(issuer),
    internal: withoutTrailingSlash(internalIssuer),
  });
  const authorizationServers = new RemoteAuthorizationServers({ remote, clock });
  const accessTokens = new OidcAccessTokens(
    { authorizationServers, clock, log },
    {
      issuer,
      algorithm: settings.OIDC_ALGORITHM,
      subjectClaim: settings.OIDC_SUB,
      actorClaim: settings.OIDC_ACTOR_CLAIM,
      rolesClaim: settings.OIDC_ROLES,
    },
  );
  const client = { clientId: settings.OIDC_CLIENT_ID ?? '', clientSecret: settings.OIDC_CLIENT_SECRET ?? '' };
  // The probe succeeds when the provider answers and accepts the client of this service.
  const probe = { name: 'identity-provider', restMs: LOGIN_REST_MS, check: () => authorizationServers.logInAsClient(issuer, client) };
  return { accessTokens, probe, close: () => outgoing.close() };
}
