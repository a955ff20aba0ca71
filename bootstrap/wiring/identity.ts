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

/** Who vouches for the callers of the administrative interface: this service, or a provider that `OIDC` names. */
export function openIdentity(settings: Settings, ports: Ports): Identity {
  const { OIDC: issuer } = settings;
  return issuer === undefined ? local(settings, ports) : external(settings, issuer, ports);
}

/** Anybody may ask for our health, and each login is work for the provider. */
const LOGIN_REST_MS = 10_000;

function local(settings: Settings, ports: Ports): Identity {
  // A former secret opens what was sealed under it and nothing else: who found it makes no tokens with it.
  const [present = ''] = settings.MASTER_SECRET;
  const key = createSecretKey(deriveKey(present, 'vidimus/access-token'));
  const tokens = { key, issuer: settings.JWT_ISSUER, lifetimeSeconds: settings.JWT_EXPIRES_IN };
  return { accessTokens: new LocalAccessTokens(ports, tokens), close: async () => {} };
}

function external(settings: Settings, issuer: string, { clock, log }: Ports): Identity {
  const internal = settings.OIDC_INTERNAL_ISSUER_URL ?? issuer;
  // The operator named the provider, so it may be called wherever it is; what tenants configure may not.
  const provider = new URL(internal);
  const port = provider.port === '' ? '' : `:${provider.port}`;
  const outgoing = new Outgoing({ allow: [...settings.OUTBOUND_ALLOW, provider.hostname + port] });
  const base = (address: string) => address.replace(/\/+$/, '');
  const remote = new RedirectedRemote(outgoing, { published: base(issuer), internal: base(internal) });
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
  // The provider answers, and knows the client of this service.
  const probe = {
    name: 'identity-provider',
    restMs: LOGIN_REST_MS,
    check: () => authorizationServers.logInAsClient(issuer, client),
  };
  return { accessTokens, probe, close: () => outgoing.close() };
}
