import { object, strictObject, z } from 'zod';
import { CertificatePem } from '../formats/der/certificate-pem.ts';
import { RegistrationCertificateRequest } from '../registrar/registration-certificate-request.ts';
import { listUpTo, Reference, textUpTo, wholeNumber } from '../shared/bounds.ts';
import { includesProfile, type Profile } from '../shared/finding.ts';
import { strictInput } from '../shared/input-object.ts';
import type { JsonObject } from '../shared/json.ts';
import { AGREED_ALGORITHMS, algorithmOf, parsePublicJwk } from '../shared/jwk.ts';
import { RedirectAddress } from '../shared/redirect-address.ts';
import type { Timed } from '../shared/resource.ts';
import { LONGEST_LIFETIME_SECONDS } from '../shared/token-lifetime.ts';
import { normalUri } from '../shared/uri.ts';
import { IssuerAddress, WebAddress } from '../shared/web-address.ts';
import { DisplayInfo } from '../tenants/display.ts';
import { PageSettings } from '../tenants/page-settings.ts';
import { WalletAlgorithms } from './wallet-algorithms.ts';
import { WalletProvider } from './wallet-provider.ts';

/** A public signature key for a supported algorithm that matches its `alg`, if present. */
function isVerificationKey(jwk: unknown): boolean {
  const key = parsePublicJwk(jwk);
  const { alg, use } = jwk as Record<string, unknown>;
  if (key === undefined || (use !== undefined && use !== 'sig')) return false;
  const algorithm = algorithmOf(key);
  return alg === undefined || alg === algorithm || (alg === 'Ed25519' && algorithm === 'EdDSA');
}

const VerificationKey = z
  .record(z.string(), z.json())
  .refine(isVerificationKey, 'a public key for ES256, ES384, ES512 or EdDSA, without private parameters');

/** A wallet that authenticates with a registered key (RFC 7523 section 2.2) in place of an attestation. */
const WalletClient = strictObject({
  client_id: textUpTo(500).describe('Name of the wallet; `iss` and `sub` of its assertions. Requests with this name require an assertion'),
  jwks: strictInput({ keys: listUpTo(VerificationKey, 20) })
    .transform((value) => value as unknown as { keys: JsonObject[] })
    .optional()
    .describe('Its public keys: ES256, ES384, ES512 or EdDSA'),
  jwks_uri: WebAddress.optional().describe('URL of its key set, instead of `jwks`'),
  redirect_uris: listUpTo(RedirectAddress, 50)
    .optional()
    .describe(
      'The only `redirect_uri` values that it may use, compared exactly. Default: any, and the user ' +
        'is shown the target of the redirect',
    ),
})
  .refine((client) => (client.jwks === undefined) !== (client.jwks_uri === undefined), { message: 'set either jwks or jwks_uri' })
  .meta({ id: 'WalletClient', allOf: [{ oneOf: [{ required: ['jwks'] }, { required: ['jwks_uri'] }] }] });
type WalletClient = z.infer<typeof WalletClient>;

/** Settings of the chained authorization server, which delegates the login to an upstream provider. */
const ChainedAsConfig = strictObject({
  enabled: z.boolean().default(true).describe('false: its addresses return 404 and its tokens are rejected'),
  upstream: strictObject({
    issuer: IssuerAddress.describe('found by OpenID Connect Discovery'),
    clientId: textUpTo(500).describe('client of this service at the provider'),
    clientSecret: textUpTo(4096).optional().describe('absent for a public client; PKCE is always used'),
    scopes: listUpTo(textUpTo(200), 50).default(['openid', 'profile']),
    userinfo: z
      .boolean()
      .optional()
      .describe(
        'false: its userinfo endpoint is not called. Default: it is called if it exists, and a login fails if it ' +
          'returns no claims of the same user, for example because access tokens are for another API',
      ),
  }).describe(
    'the OpenID provider where users log in; register {PUBLIC_URL}/{tenant}/chained-as/callback there. The claims ' +
      'of its ID token, of its userinfo endpoint, and of its access token where that is a JWT of its own, reach the claims webhook as ' +
      '`identity.token_claims`',
  ),
  token: strictObject({
    lifetimeSeconds: wholeNumber(60, LONGEST_LIFETIME_SECONDS)
      .default(3600)
      .describe('of access tokens; tokens without key binding are valid for at most 300 seconds'),
    signingKeyId: Reference.nullish().describe('key chain that signs access tokens. Default: that of the tenant'),
  }).default({ lifetimeSeconds: 3600 }),
  requireDPoP: z.boolean().default(true).describe('false: access tokens without key binding are issued, too'),
  confirmUnverifiedWallets: z
    .boolean()
    .default(true)
    .describe(
      'asks users for consent after their login before a redirect to an address that is not registered for a wallet that ' +
        'authenticated (`walletClients`, `walletProviders`). If it is disabled, an attacker who sends a ' +
        'link to a user with a session at the upstream provider gets the credentials of that user without consent',
    ),
}).meta({ id: 'ChainedAsConfig' });
type ChainedAsConfig = z.infer<typeof ChainedAsConfig>;

const BuiltInAs = strictObject({
  enabled: z
    .boolean()
    .default(true)
    .describe(
      'false: it is disabled. Metadata do not contain it, its endpoints return 404, and its access tokens ' +
        'become invalid. Offers by pre-authorized code and configurations with `iaeActions` require it',
    ),
  walletInitiated: z
    .boolean()
    .default(false)
    .describe(
      'Lets wallets begin without an offer. The page asks for approval without a login, so any user gets the credentials that have ' +
        'no `iaeActions`. At the chained and external servers wallets may always begin without an offer',
    ),
});

export { ChainedAsConfig, WalletClient };

const Seconds = z.number().int();
/** `off`: not supported. `optional`: the wallet decides. `required`: rejected without. */
const Use = z.enum(['off', 'optional', 'required']);
export const IssuanceConfigurationBody = object({
  display: z.array(DisplayInfo).max(50).describe('Display of the issuer in wallets, by language; an empty list omits it'),
  pages: PageSettings.nullish().describe('Further design of end-user pages; see docs/reference/pages-for-users.md'),
  signingKeyId: Reference.nullish().describe(
    'Key chain with the usage `signing` for access tokens of wallets. Default: the oldest one with this usage. Credentials ' +
      'are signed by `keyChainId` of their configuration',
  ),
  batchSize: Seconds.min(0)
    .max(100)
    .default(1)
    .describe('Maximum number of keys, and thus credentials, in one credential request; 0 and 1 allow one'),
  dPopRequired: z.boolean().default(true).describe('Rejects access tokens that are not bound to a key (RFC 9449)'),
  dPopNonce: Use.nullish().describe('Server nonces in DPoP proofs (RFC 9449 section 8). Default: `optional`, under a profile `required`'),
  walletAttestationRequired: z
    .boolean()
    .nullish()
    .describe(
      'Rejects wallets without an attestation of a provider on `walletProviderTrustLists`, except `walletClients`. ' +
        'Without lists no attestation is accepted. Default: false, under a profile true',
    ),
  walletProviderTrustLists: z
    .array(WebAddress)
    .max(20)
    .default([])
    .describe(
      'Addresses of lists of trusted entities (ETSI TS 119 602) as compact JWS with `x5c` (JAdES baseline B-B), at most 2 MiB, used for ' +
        'an hour at most and never past `NextUpdate`. Certificates of services of the types ' +
        '`http://uri.etsi.org/19602/SvcType/WalletSolution/Issuance` and `…/WalletProvider` are trusted for wallet and key attestations, those ' +
        'of `…/WalletSolution/Revocation` of the same entity for their status; a service with a `ServiceStatus` is ignored',
    ),
  walletProviderTrustListCertificates: z
    .array(CertificatePem)
    .max(20)
    .default([])
    .describe(
      'Allowed signers of these lists: the certificate of a signer or of its CA, one PEM each; a list that none of them ' +
        'certifies is not used. If it is absent, the lists are fetched when they are written, and their signers are stored here from ' +
        'then on. Lists of this service are signed by its own keys',
    ),
  algorithms: WalletAlgorithms,
  attestationMaxAgeSeconds: Seconds.min(60)
    .max(31_536_000)
    .nullish()
    .describe('Maximum age of a wallet attestation by its `iat`, which is then required. Default: until it expires'),
  attestationChallenge: z
    .enum(['required', 'optional'])
    .nullish()
    .describe(
      'Challenges of the challenge endpoint in proofs of possession of wallet attestations. Default: `required`, and always ' +
        'so under a profile. `optional` accepts a proof without a challenge: its `iat` must be at most five minutes old, and its ' +
        '`jti` is accepted once. A challenge in a proof is always verified',
    ),
  preferredClientStatusPeriod: Seconds.min(0)
    .max(315_360_000)
    .nullish()
    .describe(
      'Seconds for which wallet providers have to maintain the status of the wallet attestations that wallets send ' +
        '(`preferred_client_status_period` of the metadata, TS3 1.5 section 2.4); for credentials that follow that status, ' +
        'at least their lifetime. Default: the choice of the wallet',
    ),
  walletClients: z.array(WalletClient).max(200).default([]).describe('Wallets that authenticate only by `private_key_jwt`'),
  walletProviders: z.array(WalletProvider).max(50).default([]).describe('Settings for single wallet providers on the lists'),
  builtInAs: BuiltInAs.nullish().describe('The built-in authorization server'),
  authServers: z
    .array(IssuerAddress)
    .max(20)
    .meta({ uniqueItems: true })
    .default([])
    .describe(
      'Issuers of external authorization servers, exactly as in their metadata and tokens. Their access tokens are JWTs ' +
        'signed with a key that the server publishes, `typ` `at+jwt`, `JWT` or none, with `iss`, `exp`, `sub`, `aud` containing ' +
        '`<PUBLIC_URL>/<tenant>`, and `authorization_details` of type `openid_credential` or, without any, `scope`, which list the credentials that they ' +
        'cover; `cnf.jkt` binds them by DPoP; `issuer_state` identifies the offer. Symmetric algorithms and ID tokens are rejected',
    ),
  chainedAs: ChainedAsConfig.nullish().describe(
    'A server where users log in at your OpenID provider; register `<PUBLIC_URL>/<tenant>/chained-as/callback` ' +
      'there. The claims webhook gets the claims of the login as `identity`',
  ),
  preferredAuthServer: textUpTo(2048)
    .overwrite(normalUri)
    .nullish()
    .describe(
      'Listed first in the metadata, since many wallets use the first one, and used by offers without a server. `built-in`, one of `authServers`, or the enabled ' +
        'chained server as `<PUBLIC_URL>/<tenant>/chained-as`. Default: external servers first, then the ' +
        'chained one, then the built-in one',
    ),
  registrationCert: RegistrationCertificateRequest.nullish().describe(
    'The registration certificate of the issuer, by value in `issuer_info` of the metadata (ETSI TS 119 472-3 section 4.2.3): sent ' +
      'as jwt, or issued by the registrar of the tenant, with the role `registrar:manage`. It must cover every type that is ' +
      'issued; `provided_attestations` of body are derived from these by default. Required under the profile `eu`',
  ),
  refreshTokenSeconds: Seconds.min(0)
    .max(31_536_000)
    .default(2_592_000)
    .describe(
      'Lifetime of refresh tokens, also beyond the session of the offer; claims of the offer are removed with that ' +
        'session. 0: no refresh tokens',
    ),
  requestEncryption: Use.default('optional').describe('encrypted credential requests'),
  responseEncryption: Use.default('optional').describe('encrypted credential responses'),
})
  .superRefine((body, context) => {
    const refuse = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message });
    const locales = body.display.map(({ locale }) => locale?.toLowerCase() ?? '');
    if (new Set(locales).size !== locales.length) refuse('display', 'each locale may be listed once');
    if (new Set(body.authServers).size !== body.authServers.length) refuse('authServers', 'an address is listed twice');
    if (new Set(body.walletClients.map((client) => client.client_id)).size !== body.walletClients.length) {
      refuse('walletClients', 'a client_id is listed twice');
    }
    if (authorizationServers('built-in', body).length === 0) {
      refuse('builtInAs', 'no authorization server is left; set authServers or enable chainedAs');
    }
    // OpenID4VCI 1.0 section 8.2: only an encrypted request gets an encrypted response
    if (body.responseEncryption !== 'off' && body.requestEncryption === 'off') {
      refuse('responseEncryption', 'requires requestEncryption; disable both');
    }
    if (body.responseEncryption === 'required' && body.requestEncryption !== 'required') {
      refuse('responseEncryption', 'can only be required when requestEncryption is required');
    }
  })
  .meta({ id: 'IssuanceConfigurationInput' });
export type IssuanceConfigurationBody = z.infer<typeof IssuanceConfigurationBody>;

export type IssuanceConfiguration = IssuanceConfigurationBody & Timed & { readonly id: 'default' };

type OptionalSettings = 'walletAttestationRequired' | 'dPopNonce' | 'attestationChallenge';

/** Issuance settings of a tenant; open settings are decided by its profile or by the default. */
export type EffectiveIssuance = Omit<IssuanceConfigurationBody, OptionalSettings> & {
  readonly walletAttestationRequired: boolean;
  readonly dPopNonce: z.infer<typeof Use>;
  readonly attestationChallenge: 'required' | 'optional';
};

/** @param profile its requirements also apply to configurations that were stored before. */
export function effectiveIssuance<T extends IssuanceConfigurationBody>(
  configuration: T,
  profile: Profile | null,
): Omit<T, OptionalSettings> & EffectiveIssuance {
  const resolvedSettings = {
    walletAttestationRequired: configuration.walletAttestationRequired ?? false,
    dPopNonce: configuration.dPopNonce ?? 'optional',
    attestationChallenge: configuration.attestationChallenge ?? 'required',
  };
  if (profile === null) return { ...configuration, ...resolvedSettings };
  const { chainedAs, algorithms } = configuration;
  return {
    ...configuration,
    // HAIP 1.0 sections 4.3 and 4.4, FAPI 2.0 section 5.3.2.1: clients that authenticate, tokens that are bound
    walletAttestationRequired: true,
    dPopRequired: true,
    dPopNonce: 'required',
    attestationChallenge: 'required',
    ...(chainedAs && { chainedAs: { ...chainedAs, requireDPoP: true } }),
    ...(includesProfile(profile, 'eu') && { algorithms: AGREED_ALGORITHMS.filter((name) => algorithms?.includes(name) ?? true) }),
  };
}

export function defaultIssuance(tenantName: string): IssuanceConfigurationBody {
  return IssuanceConfigurationBody.parse({ display: [{ name: tenantName, locale: 'en' }] });
}

/** Adds defaults for properties that are newer than the stored configuration. */
export function withDefaults(configuration: IssuanceConfiguration): IssuanceConfiguration {
  // The stored properties are not validated again: values that an earlier release accepted stay valid.
  return { ...defaultIssuance('-'), ...configuration };
}

/** The value of `preferredAuthServer` for the built-in server. */
const BUILT_IN = 'built-in';

type ServerSettings = Pick<IssuanceConfigurationBody, 'authServers' | 'chainedAs' | 'preferredAuthServer'> &
  Partial<Pick<IssuanceConfigurationBody, 'builtInAs'>>;

export function hasBuiltInServer({ builtInAs }: Partial<Pick<IssuanceConfigurationBody, 'builtInAs'>>): boolean {
  return builtInAs?.enabled !== false;
}

/**
 * Issuers of the authorization servers that wallets may use, the preferred one first.
 * @param issuer Credential Issuer Identifier, which is the built-in server's issuer, too.
 */
export function authorizationServers(issuer: string, issuance: ServerSettings): readonly string[] {
  const { authServers, chainedAs, preferredAuthServer } = issuance;
  const chained = chainedAs?.enabled === true ? [`${issuer}/chained-as`] : [];
  // Release 0.1.0 stored hosts in other scripts without normalization.
  const external = authServers.map(normalUri);
  const servers = [...new Set([...external, ...chained, ...(hasBuiltInServer(issuance) ? [issuer] : [])])];
  const preferred = preferredAuthServer === BUILT_IN ? issuer : preferredAuthServer;
  return servers.sort((a, b) => Number(b === preferred) - Number(a === preferred));
}

/**
 * Issuer of the server for offers that name none: the preferred one, because users may have to log in there. Configurations with an
 * interactive authorization need the built-in server.
 * @param issuer Credential Issuer Identifier.
 */
export function defaultOfferServer(issuer: string, issuance: ServerSettings, isInteractive: boolean): string {
  const [preferred = issuer] = authorizationServers(issuer, issuance);
  return isInteractive ? issuer : preferred;
}

/** True if `preferredAuthServer` is unset or one of the tenant's servers. */
export function isPreferredServerAvailable(issuer: string, issuance: ServerSettings): boolean {
  const { preferredAuthServer: preferred } = issuance;
  if (preferred === null || preferred === undefined) return true;
  if (preferred === BUILT_IN) return hasBuiltInServer(issuance);
  return authorizationServers(issuer, issuance).includes(preferred);
}
