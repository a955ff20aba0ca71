import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { RemoteAuthorizationServers } from '../../adapters/remote/authorization-servers.ts';
import { GuardedHttpClient } from '../../adapters/remote/http-client.ts';
import { SystemClock } from '../../adapters/system/clock.ts';
import { completeUpstreamLogin } from '../../application/oauth/finish-upstream-login.ts';
import { AuthorizationServerError } from '../../application/ports/authorization-servers.ts';
import { EXTERNAL_TOKEN_TYPES, parseExternalToken, unverifiedIssuer } from '../../domain/oauth/external-token.ts';
import { ForeignTokenError } from '../../domain/oauth/foreign-token.ts';
import { isResponseFrom, upstreamAuthorizationUrl } from '../../domain/oauth/upstream.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { parsePublicJwk, thumbprint as thumbprintOf } from '../../domain/shared/jwk.ts';
import { makeKey, signCompact } from '../support/misbehaving-provider.ts';
import {
  CONFIDENTIAL_CLIENT,
  PUBLIC_CLIENT,
  startUpstreamProvider,
  type UpstreamOptions,
  type UpstreamProvider,
} from '../support/upstream-provider.ts';

const REDIRECT_URI = 'http://127.0.0.1:1/callback';
const US = 'https://issuer.example.net/acme';

/** RFC 9449 section 4.2 */
function dpopProof(htu: string): { readonly proof: string; readonly thumbprint: string } {
  const key = makeKey(undefined, 'ES256');
  const jwk = parsePublicJwk(key.jwk);
  if (jwk === undefined) throw new Error('no key');
  const payload = { jti: randomBytes(16).toString('hex'), htm: 'POST', htu, iat: Math.floor(Date.now() / 1000) };
  const proof = signCompact(key, { alg: 'ES256', typ: 'dpop+jwt', jwk }, payload);
  return { proof, thumbprint: thumbprintOf(jwk) };
}

const ACME = 'acme' as TenantId;

describe('certified OpenID provider', () => {
  let provider: UpstreamProvider;
  let servers: RemoteAuthorizationServers;
  const remote = new GuardedHttpClient({ allow: ['127.0.0.1'] });
  after(() => remote.close());
  afterEach(() => provider.close());

  async function start(options: UpstreamOptions = {}) {
    provider = await startUpstreamProvider(options);
    servers = new RemoteAuthorizationServers({ remote, clock: new SystemClock() });
  }

  async function authorize(client: { readonly clientId: string }, options: { readonly deny?: string } = {}) {
    const metadata = await servers.discover(provider.issuer, ACME);
    const codeVerifier = randomBytes(32).toString('base64url');
    const request = { clientId: client.clientId, redirectUri: REDIRECT_URI, codeVerifier };
    const url = upstreamAuthorizationUrl(metadata.authorizationEndpoint ?? '', {
      ...request,
      scopes: ['openid', 'profile', 'staff.read'],
      state: 'up-1',
      nonce: 'n-1',
    });
    const callbackUrl = await provider.login(url, options);
    expect(callbackUrl.searchParams.get('state')).to.equal('up-1');
    expect(isResponseFrom(metadata, callbackUrl.searchParams.get('iss') ?? undefined)).to.equal(true);
    return { ...request, error: callbackUrl.searchParams.get('error'), code: callbackUrl.searchParams.get('code') ?? '' };
  }

  const complete = (exchange: { code: string; redirectUri: string; codeVerifier: string; clientId: string }) =>
    completeUpstreamLogin(servers, {
      tenantId: ACME,
      ...exchange,
      issuer: provider.issuer,
      nonce: 'n-1',
      asksUserinfo: false,
      now: new Date(),
    });

  for (const [name, client] of Object.entries({ confidential: CONFIDENTIAL_CLIENT, public: PUBLIC_CLIENT })) {
    for (const algorithm of ['RS256', 'PS256', 'ES256', 'EdDSA'] as const) {
      it(`returns the logged in user to a ${name} client, signed with ${algorithm}`, async () => {
        await start({ algorithm });
        const identity = await complete({ ...(await authorize(client)), ...client });
        expect(identity).to.include({ iss: provider.issuer, sub: 'alice' });
        expect(identity.token_claims).to.include({ iss: provider.issuer, aud: client.clientId, given_name: 'Alice', family_name: 'Adams' });
      });
    }
  }

  it('adds the claims of a JWT access token, with lower priority than those of the ID token', async () => {
    await start({
      accessTokenAudience: 'https://api.example.org',
      resourceScopes: ['staff.read'],
      accessTokenClaims: { department: 'R&D', given_name: 'from the access token' },
    });
    const { token_claims: claims } = await complete({ ...(await authorize(PUBLIC_CLIENT)), ...PUBLIC_CLIENT });
    expect(claims).to.include({ department: 'R&D', scope: 'staff.read', given_name: 'Alice', aud: 'public' });
  });

  it('reports that the user denied the login', async () => {
    await start();
    expect(await authorize(PUBLIC_CLIENT, { deny: 'access_denied' })).to.include({ error: 'access_denied', code: '' });
  });

  const invalidExchanges: readonly [string, object][] = [
    ['another verifier', { codeVerifier: 'v'.repeat(43) }],
    ['another redirect address', { redirectUri: 'https://evil.example/callback' }],
    ['another code', { code: 'c'.repeat(43) }],
    ['a wrong secret', { clientSecret: 'wrong' }],
    ['no secret', { clientSecret: undefined }],
  ];
  for (const [name, changes] of invalidExchanges) {
    it(`returns no user for ${name}`, async () => {
      await start();
      const exchange = { ...(await authorize(CONFIDENTIAL_CLIENT)), ...CONFIDENTIAL_CLIENT, ...changes };
      const error = await complete(exchange).catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(AuthorizationServerError);
      expect(error).to.include({ fault: 'refused' });
    });
  }

  it('returns no user for a used code', async () => {
    await start();
    const exchange = { ...(await authorize(PUBLIC_CLIENT)), ...PUBLIC_CLIENT };
    await complete(exchange);
    const error = await complete(exchange).catch((thrown: unknown) => thrown);
    expect(error).to.include({ fault: 'refused', error: 'invalid_grant' });
  });

  describe('as an external authorization server', () => {
    const configurations = [{ id: 'pid', scope: 'eu.pid' }];
    const verifyToken = async (token: string, audience = US) => {
      const verifiedToken = await servers.verifyToken(provider.issuer, token, {
        tenantId: ACME,
        audience,
        types: EXTERNAL_TOKEN_TYPES,
        now: new Date(),
      });
      return parseExternalToken(verifiedToken, { credentialIssuer: US, configurations });
    };

    it('issues JWT access tokens that are accepted', async () => {
      await start({ resourceScopes: ['eu.pid'] });
      const token = await provider.accessTokenFor(US, {
        scope: 'eu.pid',
        keyThumbprint: 'nbctQrRezqflYMWMG3qy0ltedaZTA3ejDxvYTjdb-OE',
        claims: { issuer_state: 'is_9c', department: 'R&D' },
      });
      expect(unverifiedIssuer(token)).to.equal(provider.issuer);
      const external = await verifyToken(token);
      expect(external).to.deep.include({
        issuer: provider.issuer,
        subject: 'alice',
        clientId: 'public',
        issuerState: 'is_9c',
        keyThumbprint: 'nbctQrRezqflYMWMG3qy0ltedaZTA3ejDxvYTjdb-OE',
        credentialConfigurationIds: ['pid'],
        identifiers: false,
      });
      expect(external.claims).to.include({ department: 'R&D', aud: US });
    });

    it('issues tokens with authorization_details', async () => {
      await start();
      const authorizationDetails = [{ type: 'openid_credential', credential_configuration_id: 'pid', credential_identifiers: ['pid-1'] }];
      const external = await verifyToken(await provider.accessTokenFor(US, { authorizationDetails }));
      expect(external).to.deep.include({ credentialConfigurationIds: ['pid'], identifiers: true });
    });

    for (const by of ['scope', 'authorization_details'] as const) {
      it(`grants a bound token to a wallet that sends the user to log in, by ${by}`, async () => {
        await start({ resourceScopes: ['eu.pid'] });
        const details = JSON.stringify([{ type: 'openid_credential', credential_configuration_id: 'pid' }]);
        const url = new URL(
          upstreamAuthorizationUrl(`${provider.issuer}/auth`, {
            clientId: PUBLIC_CLIENT.clientId,
            redirectUri: REDIRECT_URI,
            codeVerifier: 'v'.repeat(43),
            scopes: ['openid', ...(by === 'scope' ? ['eu.pid'] : [])],
            state: 's-1',
            nonce: 'n-1',
          }),
        );
        url.searchParams.set('resource', US);
        url.searchParams.set('issuer_state', 'is_9c');
        if (by === 'authorization_details') url.searchParams.set(by, details);
        const code = (await provider.login(url.href)).searchParams.get('code') ?? '';
        const { proof, thumbprint } = dpopProof(`${provider.issuer}/token`);
        const answer = await fetch(`${provider.issuer}/token`, {
          method: 'POST',
          headers: { DPoP: proof },
          body: new URLSearchParams({
            grant_type: 'authorization_code',
            code,
            redirect_uri: REDIRECT_URI,
            code_verifier: 'v'.repeat(43),
            client_id: PUBLIC_CLIENT.clientId,
          }),
        });
        const { access_token: token, token_type: type } = (await answer.json()) as Record<string, string>;
        expect(type).to.equal('DPoP');
        expect(await verifyToken(token ?? '')).to.deep.include({
          subject: 'alice',
          issuerState: 'is_9c',
          keyThumbprint: thumbprint,
          credentialConfigurationIds: ['pid'],
        });
      });
    }

    const rejectionReason = async (work: Promise<unknown>) => {
      const error = await work.catch((thrown: unknown) => thrown);
      return error instanceof ForeignTokenError ? error.reason : error;
    };

    it('issues tokens for other audiences, which are rejected', async () => {
      await start();
      const token = await provider.accessTokenFor('https://other.example');
      expect(await rejectionReason(verifyToken(token))).to.equal('audience');
    });

    it('issues ID tokens, which are rejected as access tokens', async () => {
      await start();
      const { idToken } = await servers.exchangeCode(provider.issuer, {
        tenantId: ACME,
        ...(await authorize(PUBLIC_CLIENT)),
        ...PUBLIC_CLIENT,
      });
      expect(await rejectionReason(verifyToken(idToken, PUBLIC_CLIENT.clientId))).to.equal('id_token');
    });
  });
});
