import { expect } from 'chai';
import { authorizationServerMetadata, chainedAsMetadata } from '../../../domain/issuance/authorization-server-metadata.ts';
import { type IssuerMetadataParts, issuerMetadata, typeOf } from '../../../domain/issuance/metadata.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import type { SigningAlgorithm } from '../../../domain/shared/jwk.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { aConfiguration, anIssuance, anMdoc, DISPLAY, ISSUER, MDL, MDL_NAMESPACE } from './kit.ts';

const ALGORITHMS = ['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'];
const KEY = { kty: 'EC', crv: 'P-256', x: 'AA', y: 'BB', kid: 'one', use: 'enc', alg: 'ECDH-ES' } as const;
const UPSTREAM = { issuer: 'https://login.example', clientId: 'us' };

// biome-ignore lint/suspicious/noExplicitAny: documents of every shape
type Metadata = Record<string, any>;

function metadataWith(changes: Partial<IssuerMetadataParts> = {}): Metadata {
  return issuerMetadata({
    issuer: ISSUER,
    issuance: anIssuance(),
    configurations: [aConfiguration({ vct: 'urn:card:1' })],
    signingAlgorithm: () => 'ES256',
    encryptionKeys: [],
    ...changes,
  });
}

const metadataOf = (issuance: object, keys: IssuerMetadataParts['encryptionKeys'] = []) =>
  metadataWith({ issuance: anIssuance({ ...issuance }), encryptionKeys: keys });
const configurationMetadata = (changes: Record<string, unknown>): Metadata =>
  metadataWith({ configurations: [aConfiguration({ vct: 'urn:card:1', ...changes })] })['credential_configurations_supported'].card;

/** Returns the paths of all properties that are undefined, null or an empty array. */
function findIdleProperties(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const propertyPath = `${path}.${name}`;
    const idle = member === undefined || member === null || (Array.isArray(member) && member.length === 0);
    return [...(idle && !Array.isArray(value) ? [propertyPath] : []), ...findIdleProperties(member, propertyPath)];
  });
}

describe('credential issuer metadata', () => {
  it('are complete and contain nothing else', () => {
    expect(metadataWith()).to.deep.equal({
      credential_issuer: ISSUER,
      credential_endpoint: `${ISSUER}/credential`,
      nonce_endpoint: `${ISSUER}/nonce`,
      deferred_credential_endpoint: `${ISSUER}/deferred_credential`,
      notification_endpoint: `${ISSUER}/notification`,
      display: [{ name: 'Acme', locale: 'en' }],
      credential_configurations_supported: {
        card: {
          format: 'dc+sd-jwt',
          scope: 'card',
          vct: 'urn:card:1',
          credential_signing_alg_values_supported: ['ES256'],
          cryptographic_binding_methods_supported: ['jwk'],
          proof_types_supported: { jwt: { proof_signing_alg_values_supported: ALGORITHMS } },
          credential_metadata: { display: DISPLAY },
        },
      },
    });
  });

  it('omit empty properties at every depth', () => {
    const claims = [
      { path: ['list', null], display: [] },
      { path: ['name'], display: [{ name: 'N' }] },
    ];
    const config = { format: 'dc+sd-jwt', display: [{ name: 'Card' }], claims };
    const configurations = [
      aConfiguration({ config, keyAttestationsRequired: {}, embeddedDisclosurePolicy: null }),
      aConfiguration({ id: 'unbound', keyBinding: false, config: { ...config, claims: [] } }),
    ];
    const issuance = anIssuance({ batchSize: 3, chainedAs: null, preferredAuthServer: null });
    const metadata = metadataWith({ issuance, configurations, encryptionKeys: [KEY] });
    expect(findIdleProperties(metadata)).to.deep.equal([]);
    const { card, unbound } = metadata['credential_configurations_supported'];
    expect(card.credential_metadata.claims[0]).to.deep.equal({ path: ['list', null] });
    expect(card.proof_types_supported.jwt.key_attestations_required).to.deep.equal({});
    expect(unbound).to.have.keys(['format', 'scope', 'vct', 'credential_signing_alg_values_supported', 'credential_metadata']); // biome-ignore format: one list
    expect(unbound.credential_metadata).to.have.keys(['display']);
  });

  it('omit display properties of a credential that has none', () => {
    const configurations = [
      aConfiguration({ config: { format: 'dc+sd-jwt' } }),
      aConfiguration({ id: 'empty', config: { format: 'dc+sd-jwt', display: [], claims: [] } }),
    ];
    const metadata = metadataWith({ issuance: anIssuance({ display: [] }), configurations });
    expect(metadata).to.not.have.property('display');
    const { card, empty } = metadata['credential_configurations_supported'];
    for (const configuration of [card, empty]) expect(configuration).to.not.have.property('credential_metadata');
  });

  it('describe claims, also without a display', () => {
    const claims = [{ path: ['name'] }];
    expect(configurationMetadata({ config: { format: 'dc+sd-jwt', claims } }).credential_metadata).to.deep.equal({ claims });
  });

  it('name one type by its format, and by the document type or the URL', () => {
    expect(typeOf(anMdoc(), ISSUER)).to.equal(`mso_mdoc ${MDL}`);
    expect(typeOf(aConfiguration(), ISSUER)).to.equal(`dc+sd-jwt ${ISSUER}/vct/card`);
    expect(typeOf(aConfiguration({ vct: 'urn:card:1' }), ISSUER)).to.equal('dc+sd-jwt urn:card:1');
  });

  it('describe an mdoc in mdoc terms', () => {
    const claims = [{ path: [MDL_NAMESPACE, 'family_name'], mandatory: true }];
    const metadata = metadataWith({ configurations: [anMdoc({ claims, scope: 'licence' })] });
    expect(metadata['credential_configurations_supported'].mdl).to.deep.equal({
      format: 'mso_mdoc',
      scope: 'licence',
      doctype: MDL,
      credential_signing_alg_values_supported: [-7, -9],
      cryptographic_binding_methods_supported: ['cose_key'],
      proof_types_supported: { jwt: { proof_signing_alg_values_supported: ALGORITHMS } },
      credential_metadata: { display: DISPLAY, claims },
    });
  });

  const numbers: [SigningAlgorithm | undefined, unknown][] = [
    ['ES384', [-35, -51]],
    ['ES512', [-36, -52]],
    ['EdDSA', [-8, -19]],
    [undefined, undefined],
  ];
  for (const [algorithm, expected] of numbers) {
    it(`name the algorithm of the signing key: ${algorithm ?? 'none without one'}`, () => {
      const configurations = [anMdoc(), aConfiguration()];
      const parts = metadataWith({ configurations, signingAlgorithm: () => algorithm });
      const { mdl, card } = parts['credential_configurations_supported'];
      expect(mdl.credential_signing_alg_values_supported).to.deep.equal(expected);
      expect(card.credential_signing_alg_values_supported).to.deep.equal(algorithm && [algorithm]);
    });
  }

  it('offer a nonce only for credentials with key binding', () => {
    const configurations = [aConfiguration({ keyBinding: false })];
    expect(metadataWith({ configurations })).to.not.have.property('nonce_endpoint');
    expect(metadataWith({ configurations: [...configurations, anMdoc()] })).to.have.property('nonce_endpoint');
  });

  for (const [batchSize, expected] of [[0], [1], [2, { batch_size: 2 }], [100, { batch_size: 100 }]] as const) {
    it(`offer batches from two on: ${batchSize}`, () => {
      expect(metadataOf({ batchSize })['batch_credential_issuance']).to.deep.equal(expected);
    });
  }

  it('contain proof types as configured', () => {
    const required = { key_storage: ['iso_18045_high'], user_authentication: ['iso_18045_moderate'] };
    const proof = { proof_signing_alg_values_supported: ALGORITHMS, key_attestations_required: required };
    expect(configurationMetadata({ keyAttestationsRequired: required }).proof_types_supported).to.deep.equal({
      jwt: proof,
      attestation: proof,
    });
    const selectedTypes = configurationMetadata({ keyAttestationsRequired: required, proofTypes: ['attestation'] });
    expect(selectedTypes.proof_types_supported).to.deep.equal({ attestation: proof });
    expect(configurationMetadata({ proofTypes: ['attestation', 'jwt'] }).proof_types_supported).to.have.keys(['jwt', 'attestation']);
  });

  it('name the algorithms that the tenant allows', () => {
    const algorithms = ['ES256', 'EdDSA'];
    const { credential_configurations_supported: all } = metadataOf({ algorithms });
    expect(all.card.proof_types_supported.jwt.proof_signing_alg_values_supported).to.deep.equal([...algorithms, 'Ed25519']);
    const parts = { issuer: ISSUER, configurations: [], aggregation: true, profile: null };
    const client = { client_id: 'wallet', jwks: { keys: [newKey().jwk] } };
    const issuance = anIssuance({ algorithms: ['ES384'], walletAttestationRequired: true, walletClients: [client] } as never);
    const server = authorizationServerMetadata({ ...parts, issuance });
    for (const name of ['token_endpoint_auth', 'client_attestation', 'client_attestation_pop', 'dpop'])
      expect(server[`${name}_signing_alg_values_supported`], name).to.deep.equal(['ES384']);
  });

  it('state how long the status of attestations is kept (TS3 section 2.4)', () => {
    const required = { preferred_key_storage_status_period: 2_678_400 };
    const { jwt, attestation } = configurationMetadata({ keyAttestationsRequired: required }).proof_types_supported;
    expect(jwt.key_attestations_required).to.deep.equal(required);
    expect(attestation.key_attestations_required).to.deep.equal(required);
    const metadata = metadataOf({ preferredClientStatusPeriod: 86_400 });
    expect(metadata['preferred_client_status_period']).to.equal(86_400);
    expect(metadataWith()).to.not.have.property('preferred_client_status_period');
  });

  it('contain the reuse policy in the property that wallets read', () => {
    const options = [{ details: ['once_only'], batch_size: 10, reissue_trigger_unused: 2 }];
    const credentialReusePolicy = { id: 'arf_annex_ii', options };
    expect(configurationMetadata({ credentialReusePolicy }).credential_metadata).to.deep.equal({
      display: DISPLAY,
      credential_reuse_policy: credentialReusePolicy,
    });
    const plain = { config: { format: 'dc+sd-jwt' }, credentialReusePolicy };
    expect(configurationMetadata(plain).credential_metadata).to.deep.equal({ credential_reuse_policy: credentialReusePolicy });
    expect(configurationMetadata({}).credential_metadata).to.not.have.property('credential_reuse_policy');
  });

  it('offer neither keys nor proofs for credentials without key binding (TS3 section 2.2)', () => {
    const unbound = configurationMetadata({ keyBinding: false });
    expect(unbound).to.not.have.any.keys('proof_types_supported', 'cryptographic_binding_methods_supported');
  });

  it('contain the disclosure policy if there is one', () => {
    const embeddedDisclosurePolicy = { policy: 'allowList', values: ['CN=Shop'] };
    expect(configurationMetadata({ embeddedDisclosurePolicy })['disclosure_policy']).to.deep.equal(embeddedDisclosurePolicy);
    expect(configurationMetadata({})).to.not.have.property('disclosure_policy');
  });

  describe('name authorization servers', () => {
    const [builtInServer, chainedServer] = [ISSUER, `${ISSUER}/chained-as`];
    const [first, second] = ['https://one.example', 'https://two.example'];
    const cases: [string, object, readonly string[] | undefined][] = [
      ['no list if the issuer is the only server', {}, undefined],
      ['no list for a disabled chained server', { chainedAs: { enabled: false, upstream: UPSTREAM } }, undefined],
      ['the only other server', { authServers: [first], builtInAs: { enabled: false } }, [first]],
      ['all other servers, then the built-in one', { authServers: [first, second], chainedAs: { upstream: UPSTREAM } }, [first, second, chainedServer, builtInServer]], // biome-ignore format: one case
      ['the preferred one first', { authServers: [first, second], preferredAuthServer: second }, [second, first, builtInServer]],
      ['the built-in one first by its name', { authServers: [first], preferredAuthServer: 'built-in' }, [builtInServer, first]],
      ['the built-in one first by its address', { authServers: [first], preferredAuthServer: builtInServer }, [builtInServer, first]],
      ['the chained one first', { authServers: [first], chainedAs: { upstream: UPSTREAM }, preferredAuthServer: chainedServer }, [chainedServer, first, builtInServer]], // biome-ignore format: one case
    ];
    for (const [description, issuance, expected] of cases) {
      it(description, () => expect(metadataOf(issuance)['authorization_servers']).to.deep.equal(expected));
    }
  });

  describe('offer encryption', () => {
    const names = ['credential_request_encryption', 'credential_response_encryption'] as const;
    const offeredValues = (issuance: object, keys = [KEY]) => names.map((name) => metadataOf(issuance, keys)[name]);
    const algorithms = { enc_values_supported: ['A128GCM', 'A256GCM'], zip_values_supported: ['DEF'] };

    it('to their keys, and to those of wallets', () => {
      const secret = { ...KEY, d: 'never' };
      expect(offeredValues({}, [secret])).to.deep.equal([
        { jwks: { keys: [KEY] }, ...algorithms, encryption_required: false },
        { alg_values_supported: ['ECDH-ES'], ...algorithms, encryption_required: false },
      ]);
    });

    it('not without a key, and not when it is disabled', () => {
      for (const [issuance, keys] of [
        [{}, []],
        [{ requestEncryption: 'off', responseEncryption: 'off' }, [KEY]],
      ] as const) {
        // biome-ignore format: one list
        expect(offeredValues(issuance, [...keys])).to.deep.equal([undefined, undefined]);
      }
      expect(offeredValues({ responseEncryption: 'off' })[1]).to.equal(undefined);
    });

    it('and state when it is required', () => {
      const [request, response] = offeredValues({ requestEncryption: 'required', responseEncryption: 'required' });
      expect([request.encryption_required, response.encryption_required]).to.deep.equal([true, true]);
      expect(offeredValues({ requestEncryption: 'required' })[1].encryption_required).to.equal(false);
    });
  });
});

describe('Authorization server metadata', () => {
  const REDIRECT = [{ type: 'redirect_to_web', url: 'https://web.example/{auth_session}' }];
  const CLIENT = { client_id: 'wallet', jwks_uri: 'https://wallet.example/keys' };
  const builtIn = (
    issuance: Record<string, unknown> = {},
    configuration: Record<string, unknown> = {},
    profile: 'haip' | 'eu' | null = null,
  ): Metadata =>
    authorizationServerMetadata({
      issuer: ISSUER,
      profile,
      issuance: anIssuance(issuance),
      configurations: [aConfiguration(configuration), aConfiguration({ ...configuration, id: 'other' })],
      aggregation: true,
    });

  const common = (server: string): JsonObject => ({
    issuer: server,
    authorization_endpoint: `${server}/authorize`,
    pushed_authorization_request_endpoint: `${server}/par`,
    require_pushed_authorization_requests: true,
    token_endpoint: `${server}/token`,
    challenge_endpoint: `${server}/challenge`,
    jwks_uri: `${server}/.well-known/jwks.json`,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    token_endpoint_auth_methods_supported: ['none'],
    dpop_signing_alg_values_supported: ALGORITHMS,
    scopes_supported: ['card', 'other'],
    authorization_details_types_supported: ['openid_credential'],
  });

  it('are complete and contain nothing else', () => {
    expect(builtIn()).to.deep.equal({
      ...common(ISSUER),
      grant_types_supported: ['authorization_code', 'urn:ietf:params:oauth:grant-type:pre-authorized_code', 'refresh_token'],
      'pre-authorized_grant_anonymous_access_supported': true,
      status_list_aggregation_endpoint: `${ISSUER}/status-lists`,
    });
    const parts = { issuer: ISSUER, issuance: anIssuance(), configurations: [], profile: null };
    const withoutAggregation = authorizationServerMetadata({ ...parts, aggregation: false });
    expect(withoutAggregation).to.not.have.any.keys('status_list_aggregation_endpoint', 'scopes_supported');
    expect(findIdleProperties(withoutAggregation)).to.deep.equal([]);
  });

  it('of the chained server are the same at its address, without pre-authorized codes', () => {
    const configurations = [aConfiguration(), aConfiguration({ id: 'other', iaeActions: REDIRECT })];
    const parts = { issuer: ISSUER, issuance: anIssuance(), configurations, profile: null };
    expect(chainedAsMetadata(parts)).to.deep.equal({
      ...common(`${ISSUER}/chained-as`),
      grant_types_supported: ['authorization_code', 'refresh_token'],
    });
  });

  it('name refresh tokens only when they are enabled', () => {
    expect(builtIn({ refreshTokenSeconds: 0 })['grant_types_supported']).to.not.include('refresh_token');
  });

  it('list the authentication methods of wallets', () => {
    const required = builtIn({ walletAttestationRequired: true });
    const attested = ['attest_jwt_client_auth', 'attest_jwt_client_auth_dpop'];
    expect(required['token_endpoint_auth_methods_supported']).to.deep.equal(attested);
    expect(required['pre-authorized_grant_anonymous_access_supported']).to.equal(false);
    expect(required).to.not.have.property('token_endpoint_auth_signing_alg_values_supported');
    const trusting = builtIn({ walletProviderTrustLists: ['https://lists.example/wallets'] });
    expect(trusting['token_endpoint_auth_methods_supported']).to.deep.equal([...attested, 'none']);
    expect(trusting).to.deep.include({
      client_attestation_signing_alg_values_supported: ALGORITHMS,
      client_attestation_pop_signing_alg_values_supported: ALGORITHMS,
    });
    const registered = builtIn({ walletClients: [CLIENT], walletAttestationRequired: true });
    expect(registered['token_endpoint_auth_methods_supported']).to.deep.equal([...attested, 'private_key_jwt']);
    expect(registered['token_endpoint_auth_signing_alg_values_supported']).to.deep.equal(ALGORITHMS);
  });

  it('name the accepted proofs of possession of an attestation', () => {
    const methods = (issuance: Record<string, unknown>, profile: 'haip' | 'eu' | null = null) =>
      builtIn(issuance, {}, profile)['client_attestation_pop_methods_supported'];
    const [header, dpop] = ['attestation_pop_jwt', 'dpop_combined'];
    expect(methods({})).to.equal(undefined);
    expect(methods({ walletAttestationRequired: true })).to.deep.equal([header, dpop]);
    const trusting = { walletProviderTrustLists: ['https://lists.example/wallets'] };
    expect(methods(trusting)).to.deep.equal([header, dpop, 'none']);
    for (const profile of ['haip', 'eu'] as const) {
      expect(methods({ walletAttestationRequired: true, ...trusting }, profile)).to.equal(undefined);
      expect(builtIn({ walletAttestationRequired: true }, {}, profile)['token_endpoint_auth_methods_supported']).to.not.include(
        'attest_jwt_client_auth_dpop',
      );
    }
  });

  /** Properties of RFC 8414, RFC 9126, RFC 9207, RFC 9396, RFC 9449 (FAPI 2.0), OpenID4VCI 1.0 and client attestation draft 07. */
  const STANDARD_PROPERTIES = [
    ...['issuer', 'authorization_endpoint', 'token_endpoint', 'jwks_uri', 'scopes_supported'],
    ...['response_types_supported', 'response_modes_supported', 'grant_types_supported'],
    ...['code_challenge_methods_supported', 'token_endpoint_auth_methods_supported'],
    'token_endpoint_auth_signing_alg_values_supported',
    ...['pushed_authorization_request_endpoint', 'require_pushed_authorization_requests'],
    'authorization_response_iss_parameter_supported',
    'authorization_details_types_supported',
    'dpop_signing_alg_values_supported',
    'pre-authorized_grant_anonymous_access_supported',
    ...['challenge_endpoint', 'client_attestation_signing_alg_values_supported'],
    'client_attestation_pop_signing_alg_values_supported',
    // Token Status List section 9.1; only for tenants with status lists
    'status_list_aggregation_endpoint',
  ];
  const everyWallet = {
    ...{ walletClients: [CLIENT], walletProviderTrustLists: ['https://lists.example/wallets'] },
    walletAttestationRequired: true,
  };
  for (const [description, issuance, profile] of [
    ['without a profile', {}, null],
    ['without a profile, with registered wallets', { walletClients: [CLIENT] }, null],
    ['with the profile haip', everyWallet, 'haip'],
    ['with the profile eu', everyWallet, 'eu'],
  ] as const) {
    it(`contain standard properties only ${description}, at both servers`, () => {
      const parts = { issuer: ISSUER, profile, issuance: anIssuance(issuance), configurations: [aConfiguration()] };
      for (const metadata of [builtIn(issuance, {}, profile), chainedAsMetadata(parts)])
        expect(STANDARD_PROPERTIES).to.include.members(Object.keys(metadata));
    });
  }

  it('name interactive authorization only when a credential needs it', () => {
    const names = ['authorization_challenge_endpoint', 'interactive_authorization_endpoint'];
    expect(builtIn()).to.not.have.any.keys(names);
    expect(builtIn({}, { iaeActions: [] })).to.not.have.any.keys(names);
    const interactive = builtIn({}, { iaeActions: REDIRECT });
    for (const name of names) expect(interactive[name]).to.equal(`${ISSUER}/interactive-authorization`);
  });

  it('name a scope once, regardless of the number of credentials with it', () => {
    const config = { format: 'dc+sd-jwt', display: DISPLAY, scope: 'shared' };
    expect(builtIn({}, { config, vct: 'urn:card:1' })['scopes_supported']).to.deep.equal(['shared']);
  });
});
