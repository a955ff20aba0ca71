import { expect } from 'chai';
import { metadataAddresses, parseServerMetadata } from '../../../domain/oauth/server-metadata.ts';
import { errorForWallet, isResponseFrom, mergeClaims, upstreamAuthorizationUrl } from '../../../domain/oauth/upstream.ts';
import type { Json, JsonObject } from '../../../domain/shared/json.ts';

const ISSUER = 'https://idp.example.org';

describe('login address of the upstream provider', () => {
  const request = {
    clientId: 'acme issuer',
    redirectUri: 'https://issuer.example.net/acme/chained-as/callback',
    scopes: ['openid', 'profile'],
    state: 'up_51',
    nonce: 'un_88',
    // RFC 7636 appendix B
    codeVerifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
  };

  it('contains every parameter of the code flow, and the verifier only as a hash', () => {
    const url = new URL(upstreamAuthorizationUrl('https://idp.example.org/auth', request));
    expect(`${url.origin}${url.pathname}`).to.equal('https://idp.example.org/auth');
    expect(Object.fromEntries(url.searchParams)).to.deep.equal({
      response_type: 'code',
      client_id: 'acme issuer',
      redirect_uri: 'https://issuer.example.net/acme/chained-as/callback',
      scope: 'openid profile',
      state: 'up_51',
      nonce: 'un_88',
      code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
      code_challenge_method: 'S256',
    });
    expect(url.href).not.to.contain(request.codeVerifier);
  });

  it('keeps the query of the endpoint', () => {
    const url = new URL(upstreamAuthorizationUrl('https://idp.example.org/auth?p=sign%20in&p=2', request));
    expect(url.searchParams.getAll('p')).to.deep.equal(['sign in', '2']);
    expect(url.searchParams.get('state')).to.equal('up_51');
  });

  it('names no parameter twice, even when the endpoint has it', () => {
    const endpoint = 'https://idp.example.org/auth?state=theirs&response_type=token';
    const url = new URL(upstreamAuthorizationUrl(endpoint, request));
    expect(url.searchParams.getAll('state')).to.deep.equal(['up_51']);
    expect(url.searchParams.getAll('response_type')).to.deep.equal(['code']);
  });

  it('requests an ID token even if the configured scopes omit it', () => {
    const url = new URL(upstreamAuthorizationUrl('https://idp.example.org/auth', { ...request, scopes: ['email'] }));
    expect(url.searchParams.get('scope')).to.equal('openid email');
  });
});

describe('wallet error for an upstream error', () => {
  const table = [
    ['access_denied', 'access_denied'],
    ['temporarily_unavailable', 'temporarily_unavailable'],
    ['login_required', 'server_error'],
    ['invalid_client', 'server_error'],
    ['server_error', 'server_error'],
    ['<script>', 'server_error'],
    ['', 'server_error'],
  ] as const;
  for (const [upstream, wallet] of table) {
    it(`is ${wallet} for "${upstream}"`, () => {
      expect(errorForWallet(upstream)).to.equal(wallet);
    });
  }
});

describe('claims of a login', () => {
  it('are those of the ID token, then of userinfo, then of the access token', () => {
    const mergedClaims = mergeClaims(
      { aud: 'api', scope: 'read', name: 'A', city: 'A' },
      { aud: 'other', name: 'B', city: 'B', email: 'B' },
      { aud: 'client', name: 'C', nonce: 'n' },
    );
    const parameters = { aud: 'client', scope: 'read', name: 'C', city: 'B', email: 'B', nonce: 'n' };
    expect(mergedClaims).to.deep.equal(parameters);
  });

  it('are those of the ID token only, without other sources', () => {
    expect(mergeClaims(undefined, undefined, { sub: 'u' })).to.deep.equal({ sub: 'u' });
  });
});

describe('iss of an authorization response', () => {
  const metadata = (names: boolean) => {
    const read = parseServerMetadata({ issuer: ISSUER, authorization_response_iss_parameter_supported: names }, ISSUER);
    if (typeof read === 'string') throw new Error(read);
    return read;
  };

  it('must be the issuer when it is present', () => {
    expect(isResponseFrom(metadata(false), ISSUER)).to.equal(true);
    expect(isResponseFrom(metadata(false), `${ISSUER}/`)).to.equal(false);
  });

  it('may be absent only when the server did not announce it', () => {
    expect(isResponseFrom(metadata(false), undefined)).to.equal(true);
    expect(isResponseFrom(metadata(true), undefined)).to.equal(false);
  });
});

describe('metadata addresses', () => {
  it('are the appended OpenID form, then the inserted OAuth form', () => {
    expect(metadataAddresses('https://idp.example.org/realms/acme')).to.deep.equal([
      'https://idp.example.org/realms/acme/.well-known/openid-configuration',
      'https://idp.example.org/.well-known/oauth-authorization-server/realms/acme',
    ]);
  });

  it('have no double slash for an issuer that ends with one', () => {
    expect(metadataAddresses('https://idp.example.org/')).to.deep.equal([
      'https://idp.example.org/.well-known/openid-configuration',
      'https://idp.example.org/.well-known/oauth-authorization-server',
    ]);
  });

  const impossible = [
    'https://idp.example.org?x=1',
    'https://idp.example.org?',
    'https://idp.example.org#',
    'https://user:pass@idp.example.org',
    'ftp://idp.example.org',
    'javascript:alert(1)',
    'https://idp.example.org/a b',
    'https://idp.example.org\\@evil.example',
    `https://idp.example.org/${'a'.repeat(2048)}`,
    'idp.example.org',
    '',
  ];
  for (const issuer of impossible) {
    it(`are rejected for ${JSON.stringify(issuer.slice(0, 40))}`, () => {
      expect(metadataAddresses(issuer)).to.deep.equal([]);
    });
  }
});

describe('metadata of an external server', () => {
  const document: JsonObject = {
    issuer: ISSUER,
    authorization_endpoint: 'https://login.example.com/authorize?p=1',
    token_endpoint: 'https://api.example.com/token',
    jwks_uri: 'https://keys.example.net/jwks',
    token_endpoint_auth_methods_supported: ['client_secret_post'],
    authorization_response_iss_parameter_supported: true,
    unknown: [1],
  };

  it('may contain endpoints on any host', () => {
    expect(parseServerMetadata(document, ISSUER)).to.deep.equal({
      issuer: ISSUER,
      authorizationEndpoint: 'https://login.example.com/authorize?p=1',
      tokenEndpoint: 'https://api.example.com/token',
      jwksUri: 'https://keys.example.net/jwks',
      userinfoEndpoint: undefined,
      clientAuthenticationMethods: ['client_secret_post'],
      namesItselfInResponses: true,
    });
  });

  it('require no endpoint, and imply Basic when they name no method', () => {
    expect(parseServerMetadata({ issuer: ISSUER }, ISSUER)).to.deep.equal({
      issuer: ISSUER,
      authorizationEndpoint: undefined,
      tokenEndpoint: undefined,
      jwksUri: undefined,
      userinfoEndpoint: undefined,
      clientAuthenticationMethods: ['client_secret_basic'],
      namesItselfInResponses: false,
    });
  });

  for (const issuer of [`${ISSUER}/`, 'https://IDP.example.org', 'https://evil.example', null, [ISSUER]]) {
    it(`are rejected for the issuer ${JSON.stringify(issuer)}`, () => {
      expect(parseServerMetadata({ ...document, issuer }, ISSUER)).to.equal('wrong_issuer');
    });
  }

  const invalid: readonly [string, Json][] = [
    ['authorization_endpoint', 'http://idp.example.org/authorize'],
    ['authorization_endpoint', 'javascript:alert(1)'],
    ['authorization_endpoint', 'https://idp.example.org/authorize#x'],
    ['authorization_endpoint', '/authorize'],
    ['token_endpoint', 'http://idp.example.org/token'],
    ['token_endpoint', 'https://user@idp.example.org/token'],
    ['jwks_uri', 'http://idp.example.org/jwks'],
    ['jwks_uri', 'file:///etc/passwd'],
    ['jwks_uri', null],
    ['userinfo_endpoint', 'http://idp.example.org/me'],
    ['userinfo_endpoint', 'https://user@idp.example.org/me'],
    ['token_endpoint_auth_methods_supported', 'client_secret_basic'],
    ['token_endpoint_auth_methods_supported', [1]],
    ['token_endpoint_auth_methods_supported', Array.from({ length: 51 }, () => 'x')],
  ];
  for (const [member, value] of invalid) {
    it(`are rejected with ${member} ${JSON.stringify(value)?.slice(0, 40)}`, () => {
      expect(parseServerMetadata({ ...document, [member]: value }, ISSUER)).to.equal('bad_metadata');
    });
  }

  it('may contain http endpoints only when the issuer is http itself', () => {
    const issuer = 'http://idp.internal';
    const read = parseServerMetadata({ issuer, token_endpoint: 'http://idp.internal/token' }, issuer);
    expect(read).to.have.property('tokenEndpoint', 'http://idp.internal/token');
  });
});
