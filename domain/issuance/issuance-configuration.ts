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
  client_id: textUpTo(500).describe('Name of the wallet; `iss` and `sub` of its assertions. Requests in this name need one'),
  jwks: strictInput({ keys: listUpTo(VerificationKey, 20) })
    .transform((value) => value as unknown as { keys: JsonObject[] })
    .optional()
    .describe('Its public keys: ES256, ES384, ES512 or EdDSA'),
  jwks_uri: WebAddress.optional().describe('Where they are found, in place of `jwks`'),
  redirect_uris: listUpTo(RedirectAddress, 50)
    .optional()
    .describe(
      'The only `redirect_uri` values that it may use, compared letter by letter. Unless stated it may use any, and the user ' +
        'is shown where the browser goes',
    ),
})
  .refine((client) => (client.jwks === undefined) !== (client.jwks_uri === undefined), { message: 'give either jwks or jwks_uri' })
  .meta({ id: 'WalletClient', allOf: [{ oneOf: [{ required: ['jwks'] }, { required: ['jwks_uri'] }] }] });
type WalletClient = z.infer<typeof WalletClient>;

/** Settings of the chained authorization server, which delegates the login to an upstream provider. */
const ChainedAsConfig = strictObject({
  enabled: z.boolean().default(true).describe('false: its addresses answer 404 and its tokens are refused'),
  upstream: strictObject({
    issuer: IssuerAddress.describe('found by OpenID Connect Discovery'),
    clientId: textUpTo(500).describe('our client there'),
    clientSecret: textUpTo(4096).optional().describe('none for a public client; PKCE is used always'),
    scopes: listUpTo(textUpTo(200), 50).default(['openid', 'profile']),
    userinfo: z
      .boolean()
      .optional()
      .describe(
        'false: its userinfo endpoint is not asked; unless stated it is, where it has one, and a login fails when that ' +
          'gives no claims of the same user, for example since access tokens are for another API',
      ),
  }).describe(
    'the OpenID provider where users log in; register {PUBLIC_URL}/{tenant}/chained-as/callback there. The claims ' +
      'of its ID token, of its userinfo endpoint, and of its access token where that is a JWT of its own, reach the claims webhook as ' +
      '`identity.token_claims`',
  ),
  token: strictObject({
    lifetimeSeconds: wholeNumber(60, LONGEST_LIFETIME_SECONDS)
      .default(3600)
      .describe('of access tokens; those that no key is bound to live 300 seconds at most'),
    signingKeyId: Reference.nullish().describe('key chain that signs access tokens; the default of the tenant unless given'),
  }).default({ lifetimeSeconds: 3600 }),
  requireDPoP: z.boolean().default(true).describe('false: access tokens without a key are issued, too'),
  confirmUnverifiedWallets: z
    .boolean()
    .default(true)
    .describe(
      'ask users, after their login, before a browser goes to an address that is not registered for a wallet that ' +
        'authenticated (`walletClients`, `walletProviders`); switched off, anybody who sends a ' +
        'link to a user with a session at the upstream gets the credentials of that user unseen',
    ),
}).meta({ id: 'ChainedAsConfig' });
type ChainedAsConfig = z.infer<typeof ChainedAsConfig>;

const BuiltInAs = strictObject({
  enabled: z
    .boolean()
    .default(true)
    .describe(
      'false: it is no server of this issuer. Metadata do not name it, its endpoints are not found, and its access tokens ' +
        'end. Offers by pre-authorized code and configurations with `iaeActions` need it',
    ),
  walletInitiated: z
    .boolean()
    .default(false)
    .describe(
      'Lets wallets begin without an offer. The page asks for approval and knows no user, so anybody gets what has ' +
        'no `iaeActions`. At the chained and external servers wallets may always begin so',
    ),
});

export { ChainedAsConfig, WalletClient };

const Seconds = z.number().int();
/** `off`: not supported. `optional`: the wallet decides. `required`: rejected without. */
const Use = z.enum(['off', 'optional', 'required']);
export const IssuanceConfigurationBody = object({
  display: z.array(DisplayInfo).max(50).describe('How wallets show the issuer, by language; an empty list says nothing of it'),
  pages: PageSettings.nullish().describe('How pages for users look beside that; see docs/reference/pages-for-users.md'),
  signingKeyId: Reference.nullish().describe(
    'Key chain with the usage `signing` for access tokens of wallets; the oldest such one unless stated. Credentials ' +
      'are signed by `keyChainId` of their configuration',
  ),
  batchSize: Seconds.min(0).max(100).default(1).describe('Most keys, and so credentials, in one credential request; 0 and 1 allow one'),
  dPopRequired: z.boolean().default(true).describe('Refuses access tokens that are not bound to a key (RFC 9449)'),
  dPopNonce: Use.nullish().describe(
    'Server nonces in DPoP proofs (RFC 9449 section 8); `optional` unless stated, `required` under a profile',
  ),
  walletAttestationRequired: z
    .boolean()
    .nullish()
    .describe(
      'Refuses wallets without an attestation of a provider on `walletProviderTrustLists`, except `walletClients`. ' +
        'Without lists no attestation is accepted. False unless stated, true under a profile',
    ),
  walletProviderTrustLists: z
    .array(WebAddress)
    .max(20)
    .default([])
    .describe(
      'Addresses of lists of trusted entities (ETSI TS 119 602) as compact JWS with `x5c` (JAdES baseline B-B), at most 2 MiB, used for ' +
        'an hour at most and never past `NextUpdate`. Certificates of services of the types ' +
        '`http://uri.etsi.org/19602/SvcType/WalletSolution/Issuance` and `…/WalletProvider` vouch for wallet and key attestations, those ' +
        'of `…/WalletSolution/Revocation` of the same entity for their status; a service with a `ServiceStatus` does not count',
    ),
  walletProviderTrustListCertificates: z
    .array(CertificatePem)
    .max(20)
    .default([])
    .describe(
      'who may sign these lists: the certificate of a signer or of its CA, one PEM each; a list that none of them ' +
        'vouches for is not used. Left out, the lists are fetched when they are written, and their signers stand here from ' +
        'then on; lists of this service are signed by its own keys',
    ),
  algorithms: WalletAlgorithms,
  attestationMaxAgeSeconds: Seconds.min(60)
    .max(31_536_000)
    .nullish()
    .describe('Oldest wallet attestation by its `iat`, which it then needs; until it expires unless stated'),
  attestationChallenge: z
    .enum(['required', 'optional'])
    .nullish()
    .describe(
      'Challenges of the challenge endpoint in proofs of possession of wallet attestations. `required` unless stated, and always ' +
        'under a profile. `optional` accepts a proof without a challenge: its `iat` has to be at most five minutes old, and its ' +
        '`jti` counts once. A challenge that is sent is verified in both cases',
    ),
  preferredClientStatusPeriod: Seconds.min(0)
    .max(315_360_000)
    .nullish()
    .describe(
      'Seconds for which wallet providers shall still keep the status of the wallet attestations that wallets send ' +
        '(`preferred_client_status_period` of the metadata, TS3 1.5 section 2.4); for credentials that follow that status, ' +
        'as long as they are to live. Whatever wallets like unless stated',
    ),
  walletClients: z.array(WalletClient).max(200).default([]).describe('Wallets that authenticate by `private_key_jwt`, and in no other way'),
  walletProviders: z
    .array(WalletProvider)
    .max(50)
    .default([])
    .describe('What is known of single providers of attested wallets, beyond that the lists name them'),
  builtInAs: BuiltInAs.nullish().describe('The server that is part of the issuer'),
  authServers: z
    .array(IssuerAddress)
    .max(20)
    .meta({ uniqueItems: true })
    .default([])
    .describe(
      'Issuers of external authorization servers, letter by letter as their metadata and tokens name them. Their access tokens are JWTs ' +
        'signed with a key that the server publishes, `typ` `at+jwt`, `JWT` or none, with `iss`, `exp`, `sub`, `aud` containing ' +
        '`<PUBLIC_URL>/<tenant>`, and `authorization_details` of type `openid_credential` or, without any, `scope`, which say what they ' +
        'cover; `cnf.jkt` binds them by DPoP; `issuer_state` leads to the offer. Symmetric algorithms and ID tokens are refused',
    ),
  chainedAs: ChainedAsConfig.nullish().describe(
    'A server that has users log in at your OpenID provider; register `<PUBLIC_URL>/<tenant>/chained-as/callback` ' +
      'there. Claims of the login reach the claims webhook as `identity`',
  ),
  preferredAuthServer: textUpTo(2048)
    .overwrite(normalUri)
    .nullish()
    .describe(
      'Stands first in the metadata, where many wallets take it, and offers that name no server are for it. `built-in`, one of `authServers`, or the enabled ' +
        'chained server as `<PUBLIC_URL>/<tenant>/chained-as`; unless stated external servers come first, then the ' +
        'chained one, then the built-in one',
    ),
  registrationCert: RegistrationCertificateRequest.nullish().describe(
    'The registration certificate of the issuer, by value in `issuer_info` of the metadata (ETSI TS 119 472-3 section 4.2.3): brought ' +
      'along as jwt, or issued by the registrar of the tenant, with the role `registrar:manage`. It has to cover every type that is ' +
      'issued, and `provided_attestations` of body follow from these unless given. Demanded under the profile `eu`',
  ),
  refreshTokenSeconds: Seconds.min(0)
    .max(31_536_000)
    .default(2_592_000)
    .describe(
      'lifetime of refresh tokens, also beyond the session of the offer; claims that came with the offer end with that ' +
        'session. 0 issues and takes none',
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
      refuse('builtInAs', 'no authorization server is left; name authServers or enable chainedAs');
    }
    // OpenID4VCI 1.0 section 8.2: only an encrypted request gets an encrypted response
    if (body.responseEncryption !== 'off' && body.requestEncryption === 'off') {
      refuse('responseEncryption', 'needs requestEncryption; switch both off');
    }
    if (body.responseEncryption === 'required' && body.requestEncryption !== 'required') {
      refuse('responseEncryption', 'can be required only when requestEncryption is');
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
