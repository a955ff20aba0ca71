import { coseNumbersOf } from '../formats/cose/algorithms.ts';
import { CONTENT_ENCRYPTION } from '../formats/jose/content-encryption.ts';
import type { JsonObject } from '../shared/json.ts';
import type { PublicJwk, SigningAlgorithm } from '../shared/jwk.ts';
import { withReadableImages } from '../tenants/display.ts';
import { compact } from './compact.ts';
import { type CredentialConfiguration, proofTypesOf } from './configuration.ts';
import { bindingMethodOf } from './declared-capabilities.ts';
import { authorizationServers, type EffectiveIssuance } from './issuance-configuration.ts';
import { publishedAlgorithms } from './wallet-algorithms.ts';

/** The scope of a configuration; HAIP 1.0 section 4.1 requires one for each. */
export function scopeOf({ config, id }: CredentialConfiguration): string {
  return config.scope ?? id;
}

/** The URL at which the service publishes the type metadata of a configuration. */
export function typeAddress({ id }: Pick<CredentialConfiguration, 'id'>, issuer: string): string {
  return `${issuer}/vct/${encodeURIComponent(id)}`;
}

/** The `vct` of a configuration: configured, or the URL of the hosted type metadata. */
export function vctOf(configuration: CredentialConfiguration, issuer: string): string {
  const { vct } = configuration;
  if (typeof vct === 'string') return vct;
  return vct?.vct ?? typeAddress(configuration, issuer);
}

/** The type of a credential as one string: `vct`, or the document type of an mdoc. */
export function typeOf(configuration: CredentialConfiguration, issuer: string): string {
  const { format, docType } = configuration.config;
  return format === 'mso_mdoc' ? `${format} ${docType}` : `${format} ${vctOf(configuration, issuer)}`;
}

export type IssuerMetadataParts = {
  readonly issuer: string;
  readonly issuance: Pick<
    EffectiveIssuance,
    | 'display'
    | 'algorithms'
    | 'batchSize'
    | 'authServers'
    | 'chainedAs'
    | 'builtInAs'
    | 'preferredAuthServer'
    | 'preferredClientStatusPeriod'
    | 'requestEncryption'
    | 'responseEncryption'
  >;
  readonly configurations: readonly CredentialConfiguration[];
  readonly signingAlgorithm: (configuration: CredentialConfiguration) => SigningAlgorithm | undefined;
  /** Public keys for encrypted requests. Without a key, encryption is not advertised. */
  readonly encryptionKeys: readonly PublicJwk[];
};

/** Credential Issuer metadata (OpenID4VCI 1.0 section 12.2.4). */
export function issuerMetadata(parts: IssuerMetadataParts): JsonObject {
  const { issuer, issuance, configurations } = parts;
  const servers = authorizationServers(issuer, issuance);
  return compact({
    credential_issuer: issuer,
    // OpenID4VCI 1.0 section 12.2.4: absent when the issuer is its own authorization server
    authorization_servers: servers.length === 1 && servers[0] === issuer ? undefined : servers,
    credential_endpoint: `${issuer}/credential`,
    // HAIP 1.0 section 4.1
    nonce_endpoint: configurations.some(({ keyBinding }) => keyBinding) ? `${issuer}/nonce` : undefined,
    deferred_credential_endpoint: `${issuer}/deferred_credential`,
    notification_endpoint: `${issuer}/notification`,
    ...encryption(parts),
    // OpenID4VCI 1.0 section 12.2.4: at least 2, otherwise absent
    batch_credential_issuance: issuance.batchSize >= 2 ? { batch_size: issuance.batchSize } : undefined,
    // TS3 1.5 section 2.4: beside the configurations, since it is about the wallet
    preferred_client_status_period: issuance.preferredClientStatusPeriod,
    display: issuance.display.map(withReadableImages),
    credential_configurations_supported: Object.fromEntries(
      configurations.map((configuration) => [configuration.id, configurationMetadata(configuration, parts)]),
    ),
  });
}

const COMPRESSION = ['DEF'];

/** OpenID4VCI 1.0 section 12.2.4: only an encrypted request gets an encrypted response. */
function encryption({ issuance, encryptionKeys }: IssuerMetadataParts): Record<string, unknown> {
  const { requestEncryption, responseEncryption } = issuance;
  if (requestEncryption === 'off' || encryptionKeys.length === 0) return {};
  const shared = { enc_values_supported: CONTENT_ENCRYPTION, zip_values_supported: COMPRESSION };
  return {
    credential_request_encryption: {
      jwks: { keys: encryptionKeys.map(encryptionKey) },
      ...shared,
      encryption_required: requestEncryption === 'required',
    },
    credential_response_encryption:
      responseEncryption === 'off'
        ? undefined
        : { alg_values_supported: ['ECDH-ES'], ...shared, encryption_required: responseEncryption === 'required' },
  };
}

/** Picks the registered properties of a public key (RFC 7517 section 4). */
function encryptionKey({ kty, crv, x, y, kid, use, alg }: PublicJwk): Record<string, unknown> {
  return { kty, kid, use, alg, crv, x, y };
}

function configurationMetadata(
  configuration: CredentialConfiguration,
  { issuer, issuance, signingAlgorithm }: IssuerMetadataParts,
): JsonObject {
  const algorithm = signingAlgorithm(configuration);
  const { config, keyBinding, embeddedDisclosurePolicy } = configuration;
  const isMdoc = config.format === 'mso_mdoc';
  return compact({
    format: config.format,
    scope: scopeOf(configuration),
    ...(isMdoc ? { doctype: config.docType } : { vct: vctOf(configuration, issuer) }),
    // OpenID4VCI 1.0 appendices A.2.2 and A.3.2: numbers of COSE for an mdoc, names of JOSE for an SD-JWT VC
    credential_signing_alg_values_supported: algorithm && (isMdoc ? coseNumbersOf(algorithm) : [algorithm]),
    cryptographic_binding_methods_supported: keyBinding ? [bindingMethodOf(config)] : undefined,
    proof_types_supported: keyBinding ? proofTypes(configuration, issuance) : undefined,
    credential_metadata: credentialMetadata(configuration),
    // ETSI TS 119 472-3 section 4.2.5 publishes no name for the property; wallets use this one.
    disclosure_policy: embeddedDisclosurePolicy,
  });
}

/** Display data of a credential and the policy for its copies; absent when neither is configured. */
function credentialMetadata({ config, credentialReusePolicy: policy }: CredentialConfiguration) {
  const { display = [], claims = [] } = config;
  if (display.length === 0 && claims.length === 0 && !policy) return undefined;
  // ETSI TS 119 472-3 section 4.2.4.2; wallets look for it here
  return { display: display.map(withReadableImages), claims, credential_reuse_policy: policy };
}

function proofTypes(configuration: CredentialConfiguration, issuance: IssuerMetadataParts['issuance']): JsonObject {
  const proof = compact({
    proof_signing_alg_values_supported: publishedAlgorithms(issuance),
    // OpenID4VCI 1.0 section 12.2.4: an empty object asks for any attestation
    key_attestations_required: configuration.keyAttestationsRequired,
  });
  return Object.fromEntries(proofTypesOf(configuration).map((type) => [type, proof]));
}
