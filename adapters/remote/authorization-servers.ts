import {
  AuthorizationServerError,
  AuthorizationServers,
  type CodeExchange,
  type LoginExpectations,
  type TokenAnswer,
  type TokenExpectations,
  type UserinfoExpectations,
  type VerifiedToken,
} from '../../application/ports/authorization-servers.ts';
import type { Clock } from '../../application/ports/clock.ts';
import type { Remote, RemoteResponse } from '../../application/ports/remote.ts';
import { EXTERNAL_TOKEN_TYPES } from '../../domain/oauth/external-token.ts';
import { type ForeignKey, pickForeignKey } from '../../domain/oauth/foreign-keys.ts';
import { assertForeignClaims, ForeignTokenError, type ParsedForeignToken, parseForeignToken } from '../../domain/oauth/foreign-token.ts';
import { assertIdTokenClaims, ID_TOKEN_TYPES } from '../../domain/oauth/id-token.ts';
import type { ServerMetadata } from '../../domain/oauth/server-metadata.ts';
import { assertUserinfoClaims, USERINFO_TYPES } from '../../domain/oauth/userinfo.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { decodeUtf8 } from '../../domain/shared/utf8.ts';
import { AuthorizationServerCache, type ServerQuery } from './authorization-server-cache.ts';
import { call, fetchKeys, fetchMetadata, parseBody } from './authorization-server-documents.ts';
import { badStatus, parseTokenAnswer, requestToken } from './openid-token-request.ts';

const MAX_BYTES = 8 * 1024 * 1024;
const FRESH_MS = 600_000;
const FAILURE_MS = 15_000;
const REFRESH_MS = 30_000;

type Ports = { readonly remote: Remote; readonly clock: Clock };
type Times = { readonly tenantId: string | undefined; readonly audience: string | undefined; readonly now: Date };

/** Calls other authorization servers through the outgoing client of the service. */
export class RemoteAuthorizationServers extends AuthorizationServers {
  readonly #remote: Remote;
  readonly #metadata: AuthorizationServerCache<ServerMetadata>;
  readonly #keys: AuthorizationServerCache<readonly ForeignKey[]>;

  constructor({ remote, clock }: Ports) {
    super();
    const times = { maxBytes: MAX_BYTES, freshMs: FRESH_MS, failureMs: FAILURE_MS, refreshMs: REFRESH_MS };
    this.#remote = remote;
    this.#metadata = new AuthorizationServerCache(clock, {
      ...times,
      load: ({ issuer, tenantId }) => fetchMetadata(remote, issuer, tenantId),
    });
    this.#keys = new AuthorizationServerCache(clock, {
      ...times,
      load: async (query) => fetchKeys(remote, await this.#metadata.get(query), query.tenantId),
    });
  }

  override discover(issuer: string, tenantId: string | undefined): Promise<ServerMetadata> {
    return this.#metadata.get({ issuer, tenantId });
  }

  override async exchangeCode(issuer: string, exchange: CodeExchange): Promise<TokenAnswer> {
    // RFC 6749 section 4.1.3, RFC 7636 section 4.5
    const answer = await requestToken(this.#remote, await this.discover(issuer, exchange.tenantId), exchange, {
      grant_type: 'authorization_code',
      code: exchange.code,
      redirect_uri: exchange.redirectUri,
      code_verifier: exchange.codeVerifier,
    });
    return parseTokenAnswer(issuer, answer);
  }

  override async logInAsClient(issuer: string, client: { readonly clientId: string; readonly clientSecret: string }): Promise<void> {
    const grant = { grant_type: 'client_credentials' };
    const ownClient = { ...client, tenantId: undefined };
    const { status } = await requestToken(this.#remote, await this.discover(issuer, undefined), ownClient, grant);
    if (status !== 200) throw badStatus(issuer, status);
  }

  override async verifyToken(issuer: string, token: string, expected: TokenExpectations): Promise<VerifiedToken> {
    return this.#verify(issuer, parseForeignToken(token, expected.types), expected);
  }

  override async verifyIdToken(issuer: string, idToken: string, expected: LoginExpectations): Promise<JsonObject> {
    const parsedToken = parseForeignToken(idToken, ID_TOKEN_TYPES);
    const verified = await this.#verify(issuer, parsedToken, {
      tenantId: expected.tenantId,
      audience: expected.clientId,
      now: expected.now,
    });
    assertIdTokenClaims(verified, expected);
    return verified.claims;
  }

  override async readReceivedAccessToken(
    issuer: string,
    token: string,
    expected: { readonly tenantId: TenantId; readonly now: Date },
  ): Promise<JsonObject | undefined> {
    try {
      const parsedToken = parseForeignToken(token, EXTERNAL_TOKEN_TYPES);
      return (await this.#verify(issuer, parsedToken, { audience: undefined, ...expected })).claims;
    } catch (error) {
      if (error instanceof ForeignTokenError) return undefined;
      throw error;
    }
  }

  override async readUserinfo(issuer: string, expected: UserinfoExpectations): Promise<JsonObject | undefined> {
    const { tenantId } = expected;
    const { userinfoEndpoint } = await this.discover(issuer, tenantId);
    if (userinfoEndpoint === undefined) return undefined;
    const answer = await fetchUserinfo(this.#remote, userinfoEndpoint, expected);
    try {
      // OpenID Connect Core 1.0 section 5.3.2
      const isSigned = answer.contentType === 'application/jwt';
      const claims = isSigned ? await this.#signedClaims({ issuer, tenantId }, decodeUtf8(answer.body)?.trim() ?? '') : parseBody(answer);
      if (claims === undefined) throw new ForeignTokenError('malformed');
      assertUserinfoClaims(claims, { ...expected, issuer, isSigned });
      return claims;
    } catch (cause) {
      if (!(cause instanceof ForeignTokenError)) throw cause;
      throw userinfoFault('bad_answer', 'returned an invalid response', `userinfo_${cause.reason}`, cause);
    }
  }

  async #signedClaims(query: ServerQuery, token: string): Promise<JsonObject> {
    const parsedToken = parseForeignToken(token, USERINFO_TYPES);
    if (!(await this.#isSigned(query, parsedToken))) throw new ForeignTokenError('signature');
    return parsedToken.jws.payload;
  }

  /** Verifies the signature first; the claims are checked afterwards. */
  async #verify(issuer: string, parsedToken: ParsedForeignToken, expected: Times): Promise<VerifiedToken> {
    if (!(await this.#isSigned({ issuer, tenantId: expected.tenantId }, parsedToken))) throw new ForeignTokenError('signature');
    const { type, algorithm, jws } = parsedToken;
    assertForeignClaims(jws.payload, { ...expected, issuer });
    return { type, algorithm, claims: jws.payload };
  }

  /** @throws ForeignTokenError `unknown_key` if no key of the issuer matches, not even one of a newer key set. */
  async #isSigned(query: ServerQuery, parsedToken: ParsedForeignToken): Promise<boolean> {
    const key = pickForeignKey(await this.#keys.get(query), parsedToken);
    if (key !== undefined && (await isSignedBy(key, parsedToken))) return true;
    // A key id in the token is conclusive; without one, the key may have been replaced.
    if (key !== undefined && parsedToken.keyId !== undefined) return false;
    const renewed = pickForeignKey(await this.#newerKeys(query), parsedToken) ?? key;
    if (renewed === undefined) throw new ForeignTokenError('unknown_key');
    return isSignedBy(renewed, parsedToken);
  }

  /** @returns the cached keys if the last refresh is too recent, so that a flood of bad tokens causes no flood of requests. */
  async #newerKeys(query: ServerQuery): Promise<readonly ForeignKey[]> {
    try {
      return (await this.#keys.refresh(query)) ?? (await this.#keys.get(query));
    } catch (cause) {
      if (cause instanceof AuthorizationServerError) throw new ForeignTokenError('unknown_key', { cause });
      throw cause;
    }
  }
}

/** The algorithm was matched with the key before; an invalid key verifies nothing. */
async function isSignedBy({ jwk }: ForeignKey, { algorithm, jws }: ParsedForeignToken): Promise<boolean> {
  const compact = `${jws.signingInput}.${jws.signature.toString('base64url')}`;
  // Loaded with the first token, because many processes never verify one.
  const { compactVerify } = await import('jose/jws/compact/verify');
  try {
    await compactVerify(compact, jwk, { algorithms: [algorithm] });
    return true;
  } catch {
    return false;
  }
}

const TIMEOUT_MS = 10_000;
/** Claims of a login are stored until its wallet has collected. */
const ANSWER_BYTES = 64 * 1024;
/** RFC 6750 section 2.1, `b64token`. */
const BEARER = /^[A-Za-z0-9._~+/-]+=*$/;

/** The fault states `error`, so that an operator knows that the login itself succeeded. */
function userinfoFault(
  fault: AuthorizationServerError['fault'],
  what: string,
  error = 'userinfo',
  cause?: unknown,
): AuthorizationServerError {
  return new AuthorizationServerError(fault, `The userinfo endpoint ${what}.`, { error, cause });
}

/**
 * Calls a userinfo endpoint (OpenID Connect Core 1.0 section 5.3.1) once, without following redirects.
 * @throws AuthorizationServerError
 */
async function fetchUserinfo(
  remote: Remote,
  endpoint: string,
  { tenantId, accessToken }: { readonly tenantId: TenantId; readonly accessToken: string },
): Promise<RemoteResponse> {
  if (!BEARER.test(accessToken)) throw userinfoFault('bad_answer', 'rejects the access token');
  const answer = await call(remote, endpoint, {
    tenantId,
    method: 'GET',
    headers: { authorization: `Bearer ${accessToken}`, accept: 'application/json, application/jwt' },
    timeoutMs: TIMEOUT_MS,
    maxBytes: ANSWER_BYTES,
  }).catch((error: unknown) => {
    if (!(error instanceof AuthorizationServerError)) throw error;
    throw userinfoFault(error.fault, 'returned an incomplete response', 'userinfo', error);
  });
  if (answer.status === 200) return answer;
  const fault = answer.status >= 500 ? 'bad_status' : 'refused';
  throw userinfoFault(fault, `answered with status ${answer.status}`);
}
