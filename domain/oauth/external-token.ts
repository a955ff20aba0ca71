import { parseCompactJws } from '../formats/jose/compact.ts';
import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import type { RequestableConfiguration } from './authorization-request.ts';
import { ForeignTokenError } from './foreign-token.ts';

/** RFC 9068 section 4; the generic type and none are accepted for servers that do not follow it. */
export const EXTERNAL_TOKEN_TYPES: readonly (string | undefined)[] = ['at+jwt', 'jwt', undefined];

/** A parsed access token of an external authorization server. */
export type ExternalToken = {
  readonly issuer: string;
  readonly subject: string;
  readonly clientId?: string;
  readonly issuerState?: string;
  /** RFC 7638 thumbprint of the DPoP key; absent for a bearer token. */
  readonly keyThumbprint?: string;
  /** The tenant's configurations that the token covers, in their order. May be empty. */
  readonly credentialConfigurationIds: readonly string[];
  /** True if `authorization_details` contain identifiers: the wallet must then send one. */
  readonly identifiers: boolean;
  /** Configuration ids by credential identifier. */
  readonly configurationOfIdentifier: ReadonlyMap<string, string>;
  readonly expiresAtSeconds: number;
  readonly tokenId?: string;
  /** Every claim, unfiltered. */
  readonly claims: JsonObject;
};

const MAX_DETAILS = 100;
const MAX_IDENTIFIERS = 1000;
const MAX_TOKEN_LENGTH = 65_536;
const MAX_SUBJECT_LENGTH = 1024;

/**
 * The issuer in a token, which selects the configured issuer. Nothing is verified: the caller verifies the token against the configured
 * issuer that equals this text.
 */
export function unverifiedIssuer(token: string): string | undefined {
  const iss = parseCompactJws(token, { length: MAX_TOKEN_LENGTH })?.payload['iss'];
  return typeof iss === 'string' ? iss : undefined;
}

/**
 * Parses an access token whose signature, issuer, audience and times were verified (RFC 9068 section 2.2, RFC 9396 section 9.1, RFC 9449
 * section 6.1).
 * @param context `credentialIssuer`: our identifier; `configurations`: those of the tenant.
 * @throws ForeignTokenError `id_token`, `subject`, `expired`, `key_binding`, `too_many_details`.
 */
export function parseExternalToken(
  { type, claims }: { readonly type: string | undefined; readonly claims: JsonObject },
  context: Context,
): ExternalToken {
  const { iss, sub, exp, jti, client_id, issuer_state, cnf } = claims;
  assertAccessToken(type, claims);
  if (typeof iss !== 'string') throw new ForeignTokenError('issuer');
  if (typeof sub !== 'string' || sub === '' || sub.length > MAX_SUBJECT_LENGTH) throw new ForeignTokenError('subject');
  if (typeof exp !== 'number') throw new ForeignTokenError('expired');
  const keyThumbprint = parseKeyThumbprint(cnf);
  return {
    issuer: iss,
    subject: sub,
    expiresAtSeconds: exp,
    claims,
    ...parseRights(claims, context),
    ...(typeof client_id === 'string' ? { clientId: client_id } : {}),
    ...(typeof issuer_state === 'string' ? { issuerState: issuer_state } : {}),
    ...(typeof jti === 'string' ? { tokenId: jti } : {}),
    ...(keyThumbprint === undefined ? {} : { keyThumbprint }),
  };
}

/** Claims of ID tokens (OpenID Connect Core 1.0 sections 2 and 3.3.2.11, FAPI 1.0 part 2 section 5.1) that no access token has. */
const ID_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash', 's_hash'];
/** Values of a `typ` claim that some providers write into tokens other than access tokens. */
const OTHER_TYPES = ['id', 'refresh', 'offline', 'logout'];

/**
 * RFC 9068 section 5: an ID token must not be accepted as an access token; if the header type is ambiguous, the claims decide.
 * @param type of the header, in lower case without `application/`.
 * @throws ForeignTokenError `id_token`.
 */
export function assertAccessToken(type: string | undefined, claims: JsonObject): void {
  if (type === 'at+jwt') return;
  const { typ } = claims;
  const isOther = typeof typ === 'string' && OTHER_TYPES.includes(typ.toLowerCase());
  if (isOther || ID_TOKEN_CLAIMS.some((name) => Object.hasOwn(claims, name))) throw new ForeignTokenError('id_token');
}

/**
 * Rejects bound tokens at endpoints that accept tokens without a proof of possession.
 * @throws ForeignTokenError `key_binding` (RFC 7800 section 3.1, RFC 8705 section 3.1, RFC 9449 section 6.1).
 */
export function assertBearer(claims: JsonObject): void {
  if (Object.hasOwn(claims, 'cnf')) throw new ForeignTokenError('key_binding');
}

/**
 * Confirmation methods other than DPoP (RFC 7800 section 3, RFC 8705 section 3.1). Accepting a token by its `jkt` alone would not enforce
 * them.
 */
const OTHER_CONFIRMATION_METHODS = ['jwk', 'jwe', 'jku', 'kid', 'x5t#S256'];

/**
 * Parses the thumbprint of the DPoP key. RFC 7800 section 3.1: unknown properties of `cnf` are ignored, such as `kc-jkt-type` of Keycloak.
 * A token whose `cnf` has no `jkt` is no bearer token.
 */
function parseKeyThumbprint(cnf: Json | undefined): string | undefined {
  if (cnf === undefined) return undefined;
  const isDpop = isJsonObject(cnf) && !OTHER_CONFIRMATION_METHODS.some((name) => Object.hasOwn(cnf, name));
  const jkt = isDpop ? cnf['jkt'] : undefined;
  if (typeof jkt !== 'string') throw new ForeignTokenError('key_binding');
  return jkt;
}

type Context = { readonly credentialIssuer: string; readonly configurations: readonly RequestableConfiguration[] };

type Rights = Pick<ExternalToken, 'credentialConfigurationIds' | 'identifiers' | 'configurationOfIdentifier'>;

/** OpenID4VCI 1.0 section 5.1.2: details take precedence over scopes. */
function parseRights(claims: JsonObject, { credentialIssuer, configurations }: Context): Rights {
  const configurationIds = new Set(configurations.map(({ id }) => id));
  const details = parseDetails(claims['authorization_details'], credentialIssuer);
  const configurationOfIdentifier = new Map<string, string>();
  const authorizedIds = new Set<Json | undefined>();
  for (const { credential_configuration_id: id, credential_identifiers: identifiers } of details) {
    authorizedIds.add(id);
    for (const identifier of parseIdentifiers(identifiers)) {
      // Identifiers without a configuration id follow our convention: one dataset per configuration, identified by its id.
      const configuration = id ?? identifier;
      if (typeof configuration !== 'string' || !configurationIds.has(configuration)) continue;
      authorizedIds.add(configuration);
      configurationOfIdentifier.set(identifier, configuration);
      if (configurationOfIdentifier.size > MAX_IDENTIFIERS) throw new ForeignTokenError('too_many_details');
    }
  }
  const { scope } = claims;
  const scopes = new Set(typeof scope === 'string' ? scope.split(' ') : []);
  const covered = configurations.filter((configuration) =>
    details.length > 0 ? authorizedIds.has(configuration.id) : scopes.has(configuration.scope),
  );
  return {
    credentialConfigurationIds: covered.map(({ id }) => id),
    identifiers: configurationOfIdentifier.size > 0,
    configurationOfIdentifier,
  };
}

/**
 * The entries about credentials of this service (OpenID4VCI 1.0 section 5.1.1). Other types and other `locations` (RFC 9396 section 2.2)
 * concern other resources.
 */
function parseDetails(value: Json | undefined, credentialIssuer: string): readonly JsonObject[] {
  if (!Array.isArray(value)) return [];
  if (value.length > MAX_DETAILS) throw new ForeignTokenError('too_many_details');
  return value.filter(isJsonObject).filter(({ type, locations }) => {
    const isForIssuer = locations === undefined || (Array.isArray(locations) && locations.includes(credentialIssuer));
    return type === 'openid_credential' && isForIssuer;
  });
}

function parseIdentifiers(value: Json | undefined): readonly string[] {
  if (!Array.isArray(value)) return [];
  if (value.length > MAX_IDENTIFIERS) throw new ForeignTokenError('too_many_details');
  return value.filter((identifier) => typeof identifier === 'string');
}
