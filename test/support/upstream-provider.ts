import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Grant, type Interaction, Provider } from 'oidc-provider';

/** Headers that select the account and the decision of the simulated user. */
export const ACCOUNT_HEADER = 'x-test-account';
export const DENIAL_HEADER = 'x-test-deny';

/** Follows redirects with cookies until one leaves the provider. */
export async function browse(
  issuer: string,
  start: string,
  { accountId = 'alice', deny }: { accountId?: string; deny?: string },
): Promise<URL> {
  const cookies = new Map<string, string>();
  let url = new URL(start);
  for (let step = 0; step < 20; step++) {
    const answer = await fetch(url, {
      redirect: 'manual',
      headers: {
        cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        [ACCOUNT_HEADER]: accountId,
        ...(deny === undefined ? {} : { [DENIAL_HEADER]: deny }),
      },
    });
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '') cookies.delete(name);
      else cookies.set(name, value);
    }
    const location = answer.headers.get('location');
    if (location === null) throw new Error(`the provider answered ${answer.status}: ${await answer.text()}`);
    url = new URL(location, url);
    if (url.origin !== issuer) return url;
  }
  throw new Error('the provider redirects without end');
}

/** A secret that shows whether a Basic header was form-encoded. */
export const CONFIDENTIAL_CLIENT = { clientId: 'confidential:client', clientSecret: 'a secret: +/%&=~' } as const;
/** A client that must send its secret in the body. */
export const POST_SECRET_CLIENT = { clientId: 'posting', clientSecret: 'another secret +&' } as const;
export const PUBLIC_CLIENT = { clientId: 'public' } as const;

export const ALICE = { given_name: 'Alice', family_name: 'Adams', email: 'alice@example.org' } as const;

type Claims = Readonly<Record<string, unknown>>;

export type UpstreamOptions = {
  /** Redirect URIs of every client. */
  readonly redirectUris?: readonly string[];
  /** Further clients, in the properties of OpenID Connect Dynamic Client Registration 1.0. */
  readonly clients?: readonly Claims[];
  /** Claims by account name. */
  readonly accounts?: Readonly<Record<string, Claims>>;
  /** Scopes that can be granted for a resource. */
  readonly resourceScopes?: readonly string[];
  /** Makes the access token of every login a JWT for this audience; without it they are opaque. */
  readonly accessTokenAudience?: string;
  /** Further claims of every JWT access token. */
  readonly accessTokenClaims?: Claims;
  /**
   * OpenID Connect Core 1.0 section 5.4: claims of scopes come only from the userinfo endpoint; with `jwt` they are signed.
   */
  readonly userinfo?: 'json' | 'jwt';
  readonly algorithm?: 'RS256' | 'PS256' | 'ES256' | 'EdDSA';
};

export type MintedToken = {
  readonly accountId?: string;
  readonly clientId?: string;
  readonly scope?: string;
  readonly authorizationDetails?: readonly object[];
  /** RFC 7638 thumbprint of a DPoP key. */
  readonly keyThumbprint?: string;
  readonly lifetimeSeconds?: number;
  /** For example `issuer_state`. */
  readonly claims?: Claims;
};

export type UpstreamProvider = {
  readonly issuer: string;
  /**
   * Simulates a browser and its user: logs in and consents.
   * @param options `deny`: OAuth error in place of the login.
   * @returns the final redirect with `code` or `error`.
   */
  login(authorizationUrl: string, options?: { readonly accountId?: string; readonly deny?: string }): Promise<URL>;
  /** An `at+jwt` of the provider for `audience`, like one of its token endpoint. */
  accessTokenFor(audience: string, token?: MintedToken): Promise<string>;
  /** Number of requests that the provider answered at this path. */
  hits(path: string): number;
  close(): Promise<void>;
};

/** Starts a certified OpenID provider on a free port, which also acts as an external authorization server. */
export async function startUpstreamProvider(options: UpstreamOptions = {}): Promise<UpstreamProvider> {
  let listener: (request: IncomingMessage, response: ServerResponse) => void = () => {};
  const hits = new Map<string, number>();
  const server = createServer((request, response) => {
    const path = (request.url ?? '').replace(/\?.*$/, '');
    hits.set(path, (hits.get(path) ?? 0) + 1);
    listener(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const extras = new WeakMap<object, Claims>();
  const issuerStates = new Map<string, string>();
  const provider = withoutConsole(() => new Provider(issuer, configuration(options, extras, issuerStates)));
  const answer = provider.callback();
  listener = (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return answer(request, response);
    answerPrompt(provider, issuerStates, request, response).catch(() => response.writeHead(500).end());
  };
  return {
    issuer,
    login: (authorizationUrl, person = {}) => browse(issuer, authorizationUrl, person),
    accessTokenFor: (audience, token = {}) => mintToken(provider, options, extras, audience, token),
    hits: (path) => hits.get(path) ?? 0,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The library warns on the console about its memory storage, which is intended here. */
function withoutConsole<T>(work: () => T): T {
  const { info, warn } = console;
  console.info = () => {};
  console.warn = () => {};
  try {
    return work();
  } finally {
    console.info = info;
    console.warn = warn;
  }
}

function configuration(options: UpstreamOptions, extras: WeakMap<object, Claims>, issuerStates: ReadonlyMap<string, string>): object {
  const { algorithm = 'RS256' } = options;
  const accounts: Readonly<Record<string, Claims>> = options.accounts ?? { alice: ALICE };
  const redirect_uris = options.redirectUris ?? ['http://127.0.0.1:1/callback'];
  const client = (id: string, secret: string | undefined, method: string, extra: Claims = {}) => ({
    client_id: id,
    ...(secret === undefined ? {} : { client_secret: secret }),
    token_endpoint_auth_method: method,
    redirect_uris,
    id_token_signed_response_alg: algorithm,
    authorization_details_types: ['openid_credential'],
    ...(options.userinfo === 'jwt' && { userinfo_signed_response_alg: algorithm }),
    ...extra,
  });
  return {
    clients: [
      client(CONFIDENTIAL_CLIENT.clientId, CONFIDENTIAL_CLIENT.clientSecret, 'client_secret_basic', {
        grant_types: ['authorization_code', 'client_credentials'],
      }),
      client(POST_SECRET_CLIENT.clientId, POST_SECRET_CLIENT.clientSecret, 'client_secret_post'),
      client(PUBLIC_CLIENT.clientId, undefined, 'none'),
      ...(options.clients ?? []),
    ],
    jwks: { keys: [privateKey(algorithm)] },
    cookies: { keys: [randomBytes(16).toString('hex')] },
    claims: { openid: ['sub'], profile: ['given_name', 'family_name'], email: ['email'] },
    conformIdTokenClaims: options.userinfo !== undefined,
    extraParams: ['issuer_state'],
    findAccount: (_: unknown, accountId: string) =>
      accounts[accountId] && { accountId, claims: () => ({ sub: accountId, ...accounts[accountId] }) },
    extraTokenClaims: (_: unknown, token: { grantId?: string }) => ({
      ...options.accessTokenClaims,
      ...(issuerStates.has(token.grantId ?? '') && { issuer_state: issuerStates.get(token.grantId ?? '') }),
      ...extras.get(token),
    }),
    interactions: { url: (_: unknown, { uid }: Interaction) => `/interaction/${uid}` },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      dPoP: { enabled: true },
      jwtUserinfo: { enabled: true },
      pushedAuthorizationRequests: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: (_: unknown, __: unknown, requestedResource?: string) => requestedResource ?? options.accessTokenAudience,
        useGrantedResource: () => true,
        getResourceServerInfo: (_: unknown, audience: string) => resourceServer(options, audience),
      },
      richAuthorizationRequests: {
        enabled: true,
        types: { openid_credential: { validate: () => {} } },
        authorizationDetailsForGrantSource: (context: RarContext) => context.oidc.grant.rar,
        authorizationDetailsForAccessToken: (_: unknown, __: unknown, source: { rar?: object[] }) => source.rar,
        authorizationDetailsForIntrospection: () => undefined,
      },
    },
    ttl: { AccessToken: 600, ClientCredentials: 600, IdToken: 600, AuthorizationCode: 60, Grant: 600, Session: 600, Interaction: 600 },
  };
}

type RarContext = { readonly oidc: { readonly grant: { readonly rar?: object[] } } };

function resourceServer({ resourceScopes = [], algorithm = 'RS256' }: UpstreamOptions, audience: string) {
  return { scope: resourceScopes.join(' '), audience, accessTokenFormat: 'jwt', jwt: { sign: { alg: algorithm } } };
}

function privateKey(algorithm: string): object {
  const { privateKey: key } =
    algorithm === 'ES256'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : algorithm === 'EdDSA'
        ? generateKeyPairSync('ed25519')
        : generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...key.export({ format: 'jwk' }), use: 'sig' };
}

/** Answers every prompt of the provider as the headers of the browser specify. */
async function answerPrompt(
  provider: Provider,
  issuerStates: Map<string, string>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const interaction = await provider.interactionDetails(request, response);
  const error = request.headers[DENIAL_HEADER];
  const finish = (result: object) => provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
  if (error !== undefined) return finish({ error, error_description: 'the person did not want to' });
  if (interaction.prompt.name === 'login') return finish({ login: { accountId: request.headers[ACCOUNT_HEADER] } });
  const grantId = await grantConsent(provider, interaction);
  const issuerState = interaction.params['issuer_state'];
  if (issuerState !== undefined) issuerStates.set(grantId, issuerState);
  return finish({ consent: { grantId } });
}

async function grantConsent(provider: Provider, interaction: Interaction): Promise<string> {
  const { grantId, session, params, prompt } = interaction;
  const existingGrant: Grant | undefined = grantId === undefined ? undefined : await provider.Grant.find(grantId);
  const grant = existingGrant ?? new provider.Grant({ accountId: session?.accountId, clientId: params['client_id'] });
  const { missingOIDCScope, missingOIDCClaims, missingResourceScopes, rar } = prompt.details;
  if (missingOIDCScope !== undefined) grant.addOIDCScope(missingOIDCScope.join(' '));
  if (missingOIDCClaims !== undefined) grant.addOIDCClaims(missingOIDCClaims);
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) {
    grant.addResourceScope(resource, scopes.join(' '));
  }
  for (const detail of rar ?? []) grant.addRar(detail);
  return grant.save();
}

async function mintToken(
  provider: Provider,
  options: UpstreamOptions,
  extras: WeakMap<object, Claims>,
  audience: string,
  wanted: MintedToken,
): Promise<string> {
  const token = new provider.AccessToken({
    accountId: wanted.accountId ?? 'alice',
    client: await provider.Client.find(wanted.clientId ?? PUBLIC_CLIENT.clientId),
    resourceServer: new provider.ResourceServer(audience, resourceServer(options, audience)),
    expiresIn: wanted.lifetimeSeconds ?? 600,
    scope: wanted.scope,
    rar: wanted.authorizationDetails,
  });
  extras.set(token, wanted.claims ?? {});
  if (wanted.keyThumbprint !== undefined) token.setThumbprint('jkt', wanted.keyThumbprint);
  return token.save();
}
