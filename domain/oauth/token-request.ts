import { Failure } from '../shared/failure.ts';
import { isJsonObject, type Json, type JsonObject, MAX_STRANGER_MEMBERS, parseJson } from '../shared/json.ts';
import type { AuthorizationServer } from './grant.ts';

export const PRE_AUTHORIZED_CODE_GRANT = 'urn:ietf:params:oauth:grant-type:pre-authorized_code';
export const AUTHORIZATION_CODE_GRANT = 'authorization_code';
export const REFRESH_TOKEN_GRANT = 'refresh_token';

type Wanted = {
  /** Configuration ids that the wallet narrowed its request to; undefined when it sent no details. */
  readonly wanted: readonly string[] | undefined;
};

export type PreAuthorizedCodeRequest = Wanted & {
  readonly grantType: typeof PRE_AUTHORIZED_CODE_GRANT;
  readonly code: string;
  readonly txCode: string | undefined;
};

export type AuthorizationCodeRequest = Wanted & {
  readonly grantType: typeof AUTHORIZATION_CODE_GRANT;
  readonly code: string;
  readonly redirectUri: string | undefined;
  readonly codeVerifier: string | undefined;
};

export type RefreshRequest = Wanted & {
  readonly grantType: typeof REFRESH_TOKEN_GRANT;
  readonly refreshToken: string;
  readonly scope: string | undefined;
};

export type TokenRequest = PreAuthorizedCodeRequest | AuthorizationCodeRequest | RefreshRequest;

/**
 * Reads a token request (OpenID4VCI 1.0 section 6.1). Unknown parameters are ignored.
 * @param issuer the Credential Issuer Identifier.
 * @throws Failure `invalid_request`, `unsupported_grant_type`, `invalid_authorization_details`.
 */
export function parseTokenRequest(form: Readonly<Record<string, string>>, server: AuthorizationServer, issuer: string): TokenRequest {
  const grantType = form['grant_type'];
  if (grantType === undefined) throw new Failure('invalid_request', 'grant_type is missing');
  // OpenID4VCI 1.0 section 6.1: a transaction code belongs to its own grant only.
  if (grantType !== PRE_AUTHORIZED_CODE_GRANT && form['tx_code'] !== undefined) {
    throw new Failure('invalid_request', 'tx_code does not belong to this grant');
  }
  const wanted = parseWanted(form['authorization_details'], issuer);
  switch (grantType) {
    case AUTHORIZATION_CODE_GRANT:
      return {
        grantType,
        code: required(form, 'code'),
        redirectUri: form['redirect_uri'],
        codeVerifier: form['code_verifier'],
        wanted,
      };
    case REFRESH_TOKEN_GRANT:
      return { grantType, refreshToken: required(form, 'refresh_token'), scope: form['scope'], wanted };
    case PRE_AUTHORIZED_CODE_GRANT:
      // Users of the chained server have logged in; it knows no other grant.
      if (server === 'built-in') return { grantType, code: required(form, 'pre-authorized_code'), txCode: form['tx_code'], wanted };
  }
  throw new Failure('unsupported_grant_type', 'this server does not support the grant type');
}

function required(form: Readonly<Record<string, string>>, name: string): string {
  const value = form[name];
  if (value === undefined) throw new Failure('invalid_request', `${name} is missing`);
  return value;
}

/** Configuration ids that `authorization_details` name. */
function parseWanted(text: string | undefined, issuer: string): readonly string[] | undefined {
  return parseDetails(text, issuer)?.map(({ credential_configuration_id: id }) => {
    if (typeof id !== 'string') throw refusedDetails('credential_configuration_id is missing');
    return id;
  });
}

export const refusedDetails = (message: string) => new Failure('invalid_authorization_details', message);

/**
 * The entries of `authorization_details` (RFC 9396 section 2, OpenID4VCI 1.0 section 5.1.1), of an authorization request and
 * of a token request alike. Members that we do not know are no error.
 * @param issuer the Credential Issuer Identifier.
 */
export function parseDetails(text: string | undefined, issuer: string, most = Infinity): readonly JsonObject[] | undefined {
  if (text === undefined) return undefined;
  const details = parseJson(text, undefined, MAX_STRANGER_MEMBERS);
  if (!Array.isArray(details) || details.length === 0 || details.length > most) {
    throw refusedDetails('authorization_details must be an array of objects');
  }
  return details.map((entry: Json) => {
    if (!isJsonObject(entry) || entry['type'] !== 'openid_credential') throw refusedDetails('only the type openid_credential is known');
    const { locations, claims } = entry;
    // OpenID4VCI 1.0 section 5.1.1
    if (locations !== undefined && !(Array.isArray(locations) && locations.includes(issuer)))
      throw refusedDetails('locations names another issuer');
    const fault = claims === undefined ? undefined : findClaimsPathsProblem(claims);
    if (fault !== undefined) throw refusedDetails(`claims ${fault}`);
    return entry;
  });
}

/** @throws Failure `invalid_authorization_details` when the wallet wants more than the code is for (RFC 9396 section 6). */
export function narrow(granted: readonly string[], wanted: readonly string[] | undefined): readonly string[] {
  if (wanted === undefined) return granted;
  if (!wanted.every((id) => granted.includes(id))) {
    throw new Failure('invalid_authorization_details', 'the code does not cover a requested credential configuration');
  }
  return [...new Set(wanted)];
}

type Step = string | number | null;

/** As many as a configuration has of a claim that it describes. */
const MAX_STEPS = 32;
const MAX_STEP_LENGTH = 200;

/** What claims were seen so far below one place. */
type Seen = { kind?: 'object' | 'array'; isNamed: boolean; readonly below: Map<Step, Seen> };

/**
 * What is wrong with the claim descriptions of a request (OpenID4VCI 1.0 appendices B.3 and C): each has a path, none stands
 * there twice, and no two of them contradict each other, one seeing an object where the other sees an array.
 * @returns undefined for claims that can be asked for.
 */
function findClaimsPathsProblem(claims: Json): string | undefined {
  if (!Array.isArray(claims) || claims.length === 0) return 'must be a non-empty array of claim descriptions';
  const root = unseen();
  for (const claim of claims as readonly Json[]) {
    const path = isJsonObject(claim) ? claim['path'] : undefined;
    if (!isPath(path)) return `need a path each: a non-empty array of strings, nulls and integers, at most ${MAX_STEPS}`;
    let place = root;
    for (const step of path) {
      const kind = typeof step === 'string' ? 'object' : 'array';
      place.kind ??= kind;
      if (place.kind !== kind) return 'contradict each other';
      const next = place.below.get(step) ?? unseen();
      place.below.set(step, next);
      place = next;
    }
    if (place.isNamed) return 'have a path twice';
    place.isNamed = true;
  }
  return undefined;
}

function unseen(): Seen {
  return { isNamed: false, below: new Map() };
}

function isPath(path: Json | undefined): path is readonly Step[] {
  return Array.isArray(path) && path.length > 0 && path.length <= MAX_STEPS && path.every(isStep);
}

function isStep(step: Json): boolean {
  return typeof step === 'string' ? step.length <= MAX_STEP_LENGTH : step === null || Number.isInteger(step);
}
