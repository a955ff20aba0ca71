import { Failure } from '../shared/failure.ts';
import { isJsonObject, type Json, type JsonObject, MAX_UNTRUSTED_PROPERTIES, parseJson } from '../shared/json.ts';
import type { AuthorizationServer } from './grant.ts';

export const PRE_AUTHORIZED_CODE_GRANT = 'urn:ietf:params:oauth:grant-type:pre-authorized_code';
export const AUTHORIZATION_CODE_GRANT = 'authorization_code';
export const REFRESH_TOKEN_GRANT = 'refresh_token';

type NarrowableRequest = {
  /** Configuration ids to which the wallet narrowed its request; undefined without details. */
  readonly requestedIds: readonly string[] | undefined;
};

export type PreAuthorizedCodeRequest = NarrowableRequest & {
  readonly grantType: typeof PRE_AUTHORIZED_CODE_GRANT;
  readonly code: string;
  readonly txCode: string | undefined;
};

export type AuthorizationCodeRequest = NarrowableRequest & {
  readonly grantType: typeof AUTHORIZATION_CODE_GRANT;
  readonly code: string;
  readonly redirectUri: string | undefined;
  readonly codeVerifier: string | undefined;
};

export type RefreshRequest = NarrowableRequest & {
  readonly grantType: typeof REFRESH_TOKEN_GRANT;
  readonly refreshToken: string;
  readonly scope: string | undefined;
};

export type TokenRequest = PreAuthorizedCodeRequest | AuthorizationCodeRequest | RefreshRequest;

/**
 * Parses a token request (OpenID4VCI 1.0 section 6.1). Unknown parameters are ignored.
 * @param issuer the Credential Issuer Identifier.
 * @throws Failure `invalid_request`, `unsupported_grant_type`, `invalid_authorization_details`.
 */
export function parseTokenRequest(form: Readonly<Record<string, string>>, server: AuthorizationServer, issuer: string): TokenRequest {
  const grantType = form['grant_type'];
  if (grantType === undefined) throw new Failure('invalid_request', 'grant_type is missing');
  // OpenID4VCI 1.0 section 6.1: a transaction code is valid with its grant type only.
  if (grantType !== PRE_AUTHORIZED_CODE_GRANT && form['tx_code'] !== undefined) {
    throw new Failure('invalid_request', 'tx_code does not belong to this grant');
  }
  const requestedIds = parseRequestedIds(form['authorization_details'], issuer);
  switch (grantType) {
    case AUTHORIZATION_CODE_GRANT:
      return {
        grantType,
        code: required(form, 'code'),
        redirectUri: form['redirect_uri'],
        codeVerifier: form['code_verifier'],
        requestedIds,
      };
    case REFRESH_TOKEN_GRANT:
      return { grantType, refreshToken: required(form, 'refresh_token'), scope: form['scope'], requestedIds };
    case PRE_AUTHORIZED_CODE_GRANT:
      // The chained server supports no pre-authorized codes, because its users log in.
      if (server === 'built-in') return { grantType, code: required(form, 'pre-authorized_code'), txCode: form['tx_code'], requestedIds };
  }
  throw new Failure('unsupported_grant_type', 'this server does not support the grant type');
}

function required(form: Readonly<Record<string, string>>, name: string): string {
  const value = form[name];
  if (value === undefined) throw new Failure('invalid_request', `${name} is missing`);
  return value;
}

/** Configuration ids in `authorization_details`. */
function parseRequestedIds(text: string | undefined, issuer: string): readonly string[] | undefined {
  return parseDetails(text, issuer)?.map(({ credential_configuration_id: id }) => {
    if (typeof id !== 'string') throw invalidDetailsError('credential_configuration_id is missing');
    return id;
  });
}

export const invalidDetailsError = (message: string) => new Failure('invalid_authorization_details', message);

/**
 * The entries of `authorization_details` (RFC 9396 section 2, OpenID4VCI 1.0 section 5.1.1) of authorization and token requests. Unknown
 * properties are allowed.
 * @param issuer the Credential Issuer Identifier.
 */
export function parseDetails(text: string | undefined, issuer: string, maxEntries = Infinity): readonly JsonObject[] | undefined {
  if (text === undefined) return undefined;
  const details = parseJson(text, undefined, MAX_UNTRUSTED_PROPERTIES);
  if (!Array.isArray(details) || details.length === 0 || details.length > maxEntries) {
    throw invalidDetailsError('authorization_details must be an array of objects');
  }
  return details.map((entry: Json) => {
    if (!isJsonObject(entry) || entry['type'] !== 'openid_credential')
      throw invalidDetailsError('only the type openid_credential is supported');
    const { locations, claims } = entry;
    // OpenID4VCI 1.0 section 5.1.1
    if (locations !== undefined && !(Array.isArray(locations) && locations.includes(issuer)))
      throw invalidDetailsError('locations names another issuer');
    const fault = claims === undefined ? undefined : findClaimsPathsProblem(claims);
    if (fault !== undefined) throw invalidDetailsError(`claims ${fault}`);
    return entry;
  });
}

/** @throws Failure `invalid_authorization_details` when the wallet requests more than was granted (RFC 9396 section 6). */
export function narrowConfigurations(granted: readonly string[], requestedIds: readonly string[] | undefined): readonly string[] {
  if (requestedIds === undefined) return granted;
  if (!requestedIds.every((id) => granted.includes(id))) {
    throw new Failure('invalid_authorization_details', 'the code does not cover a requested credential configuration');
  }
  return [...new Set(requestedIds)];
}

type PathComponent = string | number | null;

/** Equals the limit of components in a configured claims path. */
const MAX_STEPS = 32;
const MAX_STEP_LENGTH = 200;

/** A node in the tree of the claims paths. */
type PathNode = { kind?: 'object' | 'array'; isNamed: boolean; readonly children: Map<PathComponent, PathNode> };

/**
 * Finds a problem of the claim descriptions in a request (OpenID4VCI 1.0 appendices B.3 and C): a missing path, a duplicate, or two paths
 * that treat the same value as object and as array.
 * @returns undefined for valid claims.
 */
function findClaimsPathsProblem(claims: Json): string | undefined {
  if (!Array.isArray(claims) || claims.length === 0) return 'must be a non-empty array of claim descriptions';
  const root = createPathNode();
  for (const claim of claims as readonly Json[]) {
    const path = isJsonObject(claim) ? claim['path'] : undefined;
    if (!isPath(path)) return `require a path each: a non-empty array of strings, nulls and integers, at most ${MAX_STEPS}`;
    let node = root;
    for (const step of path) {
      const kind = typeof step === 'string' ? 'object' : 'array';
      node.kind ??= kind;
      if (node.kind !== kind) return 'contradict each other';
      const child = node.children.get(step) ?? createPathNode();
      node.children.set(step, child);
      node = child;
    }
    if (node.isNamed) return 'have a path twice';
    node.isNamed = true;
  }
  return undefined;
}

function createPathNode(): PathNode {
  return { isNamed: false, children: new Map() };
}

function isPath(path: Json | undefined): path is readonly PathComponent[] {
  return Array.isArray(path) && path.length > 0 && path.length <= MAX_STEPS && path.every(isStep);
}

function isStep(step: Json): boolean {
  return typeof step === 'string' ? step.length <= MAX_STEP_LENGTH : step === null || Number.isInteger(step);
}
