import { expect } from 'chai';
import { parseCertificate } from '../../../domain/formats/der/certificate.ts';
import { writePemCertificates } from '../../../domain/formats/der/pem.ts';
import { CredentialConfigurationBody, effectiveCredential } from '../../../domain/issuance/configuration.ts';
import { findCredentialProblems } from '../../../domain/issuance/credential-findings.ts';
import { effectiveIssuance, IssuanceConfigurationBody } from '../../../domain/issuance/issuance-configuration.ts';
import { findIssuanceProblems, findProfileProblems } from '../../../domain/issuance/issuance-findings.ts';
import { findKeyChainProblems } from '../../../domain/keys/key-chain-findings.ts';
import { type Finding, includesProfile, type Profile, profileViolations, warningsOf } from '../../../domain/shared/finding.ts';
import { findStatusListProblems } from '../../../domain/tenants/settings-findings.ts';
import { PresentationConfigurationBody } from '../../../domain/verification/configuration.ts';
import { findPresentationProblems } from '../../../domain/verification/presentation-findings.ts';
import { aKeyChain } from '../../contract/store/builders.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { certify, pem } from '../../support/test-certificates.ts';

const display = [{ name: 'Acme', locale: 'en' }];
const CLIENT = {
  client_id: 'wallet',
  jwks: {
    keys: [
      {
        kty: 'EC',
        crv: 'P-256',
        kid: '1',
        x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
        y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
      },
    ],
  },
};
const ONCE = { details: ['once_only'], batch_size: 10, reissue_trigger_unused: 2 };
const LIMITED = { details: ['limited_time'], reissue_trigger_lifetime_left: 60 };
/** These documents comply with the profile. */
const ISSUANCE = { display, walletAttestationRequired: true, dPopNonce: 'required', walletClients: [CLIENT] };
const CREDENTIAL = {
  id: 'pid',
  config: { format: 'dc+sd-jwt', display },
  keyAttestationsRequired: {},
  credentialReusePolicy: { id: 'arf_annex_ii', options: [ONCE] },
  disclosureFrame: { _sd: ['name'] },
  claims: { name: 'Ada' },
  lifeTime: 3600,
};
const LICENCE = {
  id: 'mdl',
  config: { format: 'mso_mdoc', display, docType: 'org.iso.18013.5.1.mDL' },
  keyAttestationsRequired: {},
  credentialReusePolicy: { id: 'arf_annex_ii', options: [ONCE] },
};
/** Values of licence elements with a special format. */
const VALUES: Readonly<Record<string, unknown>> = {
  birth_date: '1985-12-10',
  issue_date: '2026-01-01',
  expiry_date: '2031-01-01',
  portrait: 'data:image/jpeg;base64,/9j/4AAQSkZJRg==',
  driving_privileges: [{ vehicle_category_code: 'B' }],
};
const MDOC_QUERY = { id: 'mdl', format: 'mso_mdoc', meta: { doctype_value: 'org.iso.18013.5.1.mDL' } };
const QUERY = { id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid'] } };
const PRESENTATION = { id: 'age', dcql_query: { credentials: [QUERY] }, redirectUri: 'https://shop.example/done' };

const members = (findings: readonly Finding[]) => findings.map(({ member }) => member);

describe('configuration warnings', () => {
  const rejectedProperties = (findings: readonly Finding[]) => members(findings.filter(({ refusedBy = [] }) => refusedBy.includes('haip')));

  const issuanceProblems = (changes: object, profile: Profile | null = null) =>
    findIssuanceProblems(IssuanceConfigurationBody.parse({ ...ISSUANCE, ...changes }), profile);
  const ISSUANCES: [string, object, string, { haip: boolean }][] = [
    ['wallets without an attestation', { walletAttestationRequired: false }, 'walletAttestationRequired', { haip: true }],
    ['no trusted wallet provider', { walletClients: [] }, 'walletProviderTrustLists', { haip: false }],
    ['bearer tokens', { dPopRequired: false }, 'dPopRequired', { haip: true }],
    ['proofs without nonces', { dPopNonce: 'off' }, 'dPopNonce', { haip: true }],
    ['optional nonces', { dPopNonce: 'optional' }, 'dPopNonce', { haip: true }],
    ['proofs of wallet attestations without challenges', { attestationChallenge: 'optional' }, 'attestationChallenge', { haip: true }],
    ['external servers', { authServers: ['https://as.example'] }, 'authServers', { haip: false }],
    [
      'bearer tokens of the chained server',
      { chainedAs: { requireDPoP: false, upstream: { issuer: 'https://login.example', clientId: 'c' } } },
      'chainedAs.requireDPoP',
      { haip: true },
    ],
    [
      'logins with arbitrary redirect addresses',
      { chainedAs: { confirmUnverifiedWallets: false, upstream: { issuer: 'https://login.example', clientId: 'c' } } },
      'chainedAs.confirmUnverifiedWallets',
      { haip: false },
    ],
  ];
  it('of an issuer: none about attestations if a list is trusted or attestations are optional', () => {
    const walletProviderTrustLists = ['https://lists.example/lote'];
    const signers = { walletProviderTrustListCertificates: [] };
    expect(issuanceProblems({ walletClients: [], walletProviderTrustLists, ...signers })).to.deep.equal([]);
    const unset = { walletClients: [], walletAttestationRequired: false };
    expect(members(issuanceProblems(unset))).to.deep.equal(['walletAttestationRequired']);
    expect(warningsOf(issuanceProblems(unset), null)).to.deep.equal([]);
  });

  for (const [description, changes, member, { haip }] of ISSUANCES) {
    it(`of an issuer: ${description}`, () => {
      expect(members(issuanceProblems(changes))).to.deep.equal([member]);
      expect(rejectedProperties(issuanceProblems(changes))).to.deep.equal(haip ? [member] : []);
    });
  }

  it('of an issuer: none for one that conforms to HAIP, nor for values that its profile sets', () => {
    expect(issuanceProblems({})).to.deep.equal([]);
    for (const unsetValue of [null, undefined]) {
      const unset = { walletAttestationRequired: unsetValue, dPopNonce: unsetValue };
      expect(members(issuanceProblems(unset))).to.deep.equal(['walletAttestationRequired', 'dPopNonce']);
      // Unset properties do not violate the profile.
      expect(rejectedProperties(issuanceProblems(unset))).to.deep.equal([]);
      expect(issuanceProblems(unset, 'haip')).to.deep.equal([]);
    }
  });

  it('of a tenant that adopts a profile: wallets that its issuer will exclude', () => {
    const configurationWith = (changes: object) => ({
      ...IssuanceConfigurationBody.parse({ ...ISSUANCE, walletClients: [], ...changes }),
      ...{ id: 'default' as const, createdAt: new Date(0), updatedAt: new Date(0) },
    });
    for (const issuance of [undefined, configurationWith({ walletAttestationRequired: null })]) {
      const [first, ...rest] = findProfileProblems('haip', issuance);
      expect([first?.member, first?.concerns, rest]).to.deep.equal(['profile', 'every wallet', []]);
      expect(findProfileProblems(null, issuance)).to.deep.equal([]);
    }
    expect(findProfileProblems('haip', configurationWith({ walletClients: [CLIENT] }))).to.deep.equal([]);
  });

  const credentialProblems = (body: object, profile: Profile | null = null) =>
    findCredentialProblems(CredentialConfigurationBody.parse(body), profile);
  const CREDENTIALS: [string, object, string][] = [
    ['unbound', { keyBinding: false, keyAttestationsRequired: null, credentialReusePolicy: null }, 'keyBinding'],
    ['presented any number of times', { credentialReusePolicy: null }, 'credentialReusePolicy'],
    ['without key attestations', { keyAttestationsRequired: null }, 'keyAttestationsRequired'],
    ['without key attestation requirements', { keyAttestationsRequired: undefined }, 'keyAttestationsRequired'],
    ['without a name', { config: { format: 'dc+sd-jwt' } }, 'config.display'],
    ['without an expiry', { lifeTime: undefined }, 'statusManagement'],
    ['that moves to another wallet', { oneActiveSet: true, statusManagement: true }, 'oneActiveSet'],
    ['that outlives its wallet', { lifeTime: 86_400 }, 'statusManagement'],
    ['without a frame', { disclosureFrame: undefined }, 'disclosureFrame'],
    [
      'a display in no language, of a type that the service hosts',
      { vct: { name: 'Acme' }, config: { format: 'dc+sd-jwt', display: [{ name: 'Acme' }] } },
      'config.display.0.locale',
    ],
    [
      'a display in no language, of no type',
      { vct: null, config: { format: 'dc+sd-jwt', display: [{ name: 'Acme' }] } },
      'config.display.0.locale',
    ],
    ['only one proof type', { proofTypes: ['attestation'] }, 'proofTypes'],
    ['for ever', { lifeTime: null }, 'statusManagement'],
    [
      'so short that copies share their expiry',
      { lifeTime: 1209, credentialReusePolicy: { id: 'arf_annex_ii', options: [LIMITED] } },
      'lifeTime',
    ],
    ['all visible', { disclosureFrame: null }, 'disclosureFrame'],
    ['a display in no language', { config: { format: 'dc+sd-jwt', display: [{ name: 'Acme' }] } }, 'config.display.0.locale'],
  ];
  for (const [description, changes, member] of CREDENTIALS) {
    it(`of a credential: ${description}`, () => {
      expect(members(credentialProblems({ ...CREDENTIAL, ...changes }))).to.deep.equal([member]);
    });
  }

  it('of a credential: none for one with expiry, selective disclosure and key binding', () => {
    expect(credentialProblems(CREDENTIAL)).to.deep.equal([]);
    expect(credentialProblems({ ...CREDENTIAL, lifeTime: 3600 })).to.deep.equal([]);
    expect(members(credentialProblems({ ...CREDENTIAL, lifeTime: 3599 }))).to.deep.equal(['lifeTime']);
    expect(credentialProblems({ ...CREDENTIAL, lifeTime: null, statusManagement: true })).to.deep.equal([]);
    const otherServer = { ...CREDENTIAL, vct: 'urn:pid', config: { format: 'dc+sd-jwt', display: [{ name: 'Acme' }] } };
    expect(credentialProblems(otherServer)).to.deep.equal([]);
    expect(credentialProblems({ ...otherServer, vct: { vct: 'urn:pid', name: 'Acme' } })).to.deep.equal([]);
  });

  it('of a driving licence: missing elements, if it has any', () => {
    expect(credentialProblems(LICENCE)).to.deep.equal([]);
    const [firstProblem, ...rest] = credentialProblems({ ...LICENCE, claims: { family_name: 'Lovelace' } });
    expect(rest).to.deep.equal([]);
    expect(firstProblem?.member).to.equal('claims');
    expect(firstProblem?.message).to.include('given_name, birth_date').and.not.include('family_name');
    const claimsByNamespace = { 'org.iso.18013.5.1': { family_name: 'Lovelace' } };
    const licence = { ...LICENCE, config: { ...LICENCE.config, claimsByNamespace } };
    for (const claims of [null, undefined]) {
      expect(members(credentialProblems({ ...licence, claims }))).to.deep.equal(['config.claimsByNamespace']);
    }
    const missingNames = firstProblem?.message.match(/needs (.*)/)?.[1]?.split(', ') ?? [];
    const completeClaims = Object.fromEntries(['family_name', ...missingNames].map((name) => [name, VALUES[name] ?? 'x']));
    expect(credentialProblems({ ...LICENCE, claims: completeClaims }), 'no warning for complete claims').to.deep.equal([]);
    const otherDocType = { ...LICENCE, config: { ...LICENCE.config, docType: 'com.acme.card' }, claims: { a: 1 } };
    expect(credentialProblems(otherDocType)).to.deep.equal([]);
  });

  const presentationProblems = (changes: object, profile: Profile | null = null) =>
    findPresentationProblems(PresentationConfigurationBody.parse({ ...PRESENTATION, ...changes }), profile);
  const waiving = { credentials: [{ ...QUERY, require_cryptographic_holder_binding: false }] };
  describe('for a key identifier of a trusted authority', () => {
    const rejectedFor = async (value: (base64url: string) => string, others: object[] = []) => {
      const root = await certify({ name: 'Root', ca: true });
      const read = parseCertificate(Buffer.from(root.certificate, 'base64'));
      const trusted_authorities = [{ type: 'aki', values: [value(read?.subjectKeyId ?? '')] }];
      return presentationProblems({
        trustAnchors: [{ certificate: pem(root) }, ...others],
        dcql_query: { credentials: [{ ...QUERY, trusted_authorities }] },
      })
        .map(({ member }) => member)
        .filter((member) => member.includes('trusted_authorities'));
    };
    const WARNING = ['dcql_query.credentials.0.trusted_authorities.0'];
    const asHex = (text: string) => Buffer.from(text, 'base64url').toString('hex');

    it('are absent if an anchor has it', async () => {
      expect(await rejectedFor((text) => text)).to.deep.equal([]);
    });
    it('are present if no anchor has it', async () => {
      expect(await rejectedFor(() => Buffer.alloc(20, 9).toString('base64url'))).to.deep.equal(WARNING);
    });
    it('are present in hexadecimal, also if anchors come from a key chain', async () => {
      expect(await rejectedFor(asHex)).to.deep.equal(WARNING);
      expect(await rejectedFor(asHex, [{ keyChainId: 'signing' }])).to.deep.equal(WARNING);
    });
  });

  const PRESENTATIONS: [string, object, string, { haip: boolean }][] = [
    ['answers in the clear', { responseMode: 'direct_post' }, 'responseMode', { haip: true }],
    ['a name by host', { clientIdPrefix: 'x509_san_dns' }, 'clientIdPrefix', { haip: true }],
    ['no redirect of the browser', { redirectUri: null }, 'redirectUri', { haip: false }],
    ['no redirect address', { redirectUri: undefined }, 'redirectUri', { haip: false }],
    ['copies of credentials', { dcql_query: waiving }, 'dcql_query.credentials.0.require_cryptographic_holder_binding', { haip: true }],
    [
      'a claim outside of all claim sets',
      {
        dcql_query: {
          credentials: [
            {
              ...QUERY,
              claims: [
                { id: 'name', path: ['name'] },
                { id: 'age', path: ['age'] },
                { id: 'city', path: ['city'] },
              ],
              claim_sets: [['name'], ['city', 'name']],
            },
          ],
        },
      },
      'dcql_query.credentials.0.claims.1',
      { haip: false },
    ],
    ['results without the browser', { requireResponseCode: false }, 'requireResponseCode', { haip: true }],
    ['signers of anything', { mdlProfile: 'none' }, 'mdlProfile', { haip: false }],
    [
      'transaction data for an mdoc',
      {
        dcql_query: { credentials: [MDOC_QUERY] },
        transaction_data: [{ type: 'pay', credential_ids: ['mdl'] }],
        transactionDataElements: { pay: { namespace: 'n', element: 'e' } },
      },
      'transaction_data.0.credential_ids',
      { haip: false },
    ],
  ];
  for (const [description, changes, member, { haip }] of PRESENTATIONS) {
    it(`of a request: ${description}`, () => {
      expect(members(presentationProblems(changes))).to.deep.equal([member]);
      expect(rejectedProperties(presentationProblems(changes))).to.deep.equal(haip ? [member] : []);
    });
  }

  it('of a request: unsigned for HAIP, and for all tenants a link that is too long for a QR code', () => {
    const findings = presentationProblems({ clientIdPrefix: 'redirect_uri' });
    expect(members(findings)).to.deep.equal(['clientIdPrefix', 'clientIdPrefix']);
    expect(rejectedProperties(findings)).to.deep.equal(['clientIdPrefix']);
    const [warning, ...others] = warningsOf(findings, null);
    expect(others).to.deep.equal([]);
    expect(warning?.rule).to.equal('OpenID4VP 1.0 section 3.2');
    expect(warning?.message).to.match(/^the link has about \d{4} characters; above 1200 no QR code is made/);
  });

  it('of a request: none for claims in a set, or without sets', () => {
    const claims = [{ id: 'name', path: ['name'] }];
    for (const rest of [{ claims }, { claims, claim_sets: [['name']] }, {}])
      expect(presentationProblems({ dcql_query: { credentials: [{ ...QUERY, ...rest }] } })).to.deep.equal([]);
  });

  it('of a request: none for transactions that an SD-JWT VC confirms', () => {
    const transaction_data = [{ type: 'pay', credential_ids: ['pid'] }];
    expect(presentationProblems({ transaction_data })).to.deep.equal([]);
  });

  it('of a request: an issuer that is trusted by its own certificate, but not one by its authority', async () => {
    expect(presentationProblems({})).to.deep.equal([]);
    const root = await certify({ name: 'Root', ca: true });
    const leaf = await certify({ name: 'Leaf', by: root });
    const invalidCertificate = writePemCertificates([Buffer.from('junk').toString('base64')]);
    const anchors = [pem(root), pem(leaf), 'no certificate', invalidCertificate].map((certificate) => ({ certificate }));
    expect(rejectedProperties(presentationProblems({ trustAnchors: anchors }))).to.deep.equal(['trustAnchors.1.certificate']);
    const pins = [false, true].map((pin) => ({ certificate: pem(root), pin }));
    expect(rejectedProperties(presentationProblems({ trustAnchors: pins }))).to.deep.equal(['trustAnchors.1.certificate']);
  });

  it('of status lists: those with a long cache time, and those with few entries', () => {
    const problemsOf = (statusListConfig: Parameters<typeof findStatusListProblems>[0]['statusListConfig']) =>
      members(findStatusListProblems({ statusListConfig }));
    expect(problemsOf(null)).to.deep.equal([]);
    for (const unset of [{}, { ttl: null, capacity: null }]) expect(problemsOf(unset)).to.deep.equal([]);
    expect(problemsOf({ ttl: 86_400, capacity: 10_000 })).to.deep.equal([]);
    expect(problemsOf({ ttl: 86_401, capacity: 9_999 })).to.deep.equal(['ttl', 'capacity']);
  });
});

const POLICY = { id: 'arf_annex_ii', options: [ONCE] };
const CERTIFICATE = { jwt: 'a.b.c' };
const LISTS = ['https://lists.example/lote'];

const QUERIES = { id: 'age', dcql_query: { credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid'] } }] } };
const OTHER = { format: 'other', data: { a: 1 } };
const CERTIFIED = { format: 'registration_cert', data: { a: 1 } };
const UNBOUND = { keyBinding: false, credentialReusePolicy: null };

describe('profile of the European wallet', () => {
  /** Returns the paths of the properties that a profile rejects. */
  const rejectedProperties = (findings: readonly Finding[], profile: Profile) =>
    profileViolations(findings, profile).map(({ path }) => path);

  it('includes all rules of HAIP, and HAIP does not include its rules', () => {
    expect([includesProfile('eu', 'haip'), includesProfile('eu', 'eu'), includesProfile('haip', 'haip')]).to.deep.equal([true, true, true]);
    expect([includesProfile('haip', 'eu'), includesProfile(null, 'haip'), includesProfile(null, 'eu')]).to.deep.equal([
      false,
      false,
      false,
    ]);
    const issuance = IssuanceConfigurationBody.parse({ ...{ display, registrationCert: CERTIFICATE, dPopRequired: false } });
    expect(rejectedProperties(findIssuanceProblems(issuance, 'eu'), 'eu')).to.deep.equal(['dPopRequired']);
  });

  it('names the rule, the property and the remedy', () => {
    const issuance = IssuanceConfigurationBody.parse({ display, algorithms: ['ES256', 'EdDSA'] });
    const [fault] = profileViolations(findIssuanceProblems(issuance, 'eu'), 'eu');
    expect(fault).to.deep.equal({
      path: 'algorithms',
      message:
        'profile eu (ARF 3.0 OIA_03 and WUA_04, ECCG Agreed Cryptographic Mechanisms 2): signatures by EdDSA are accepted, ' +
        'which is not an agreed algorithm; remove EdDSA',
    });
  });

  const issuances: [string, object, string[], Profile][] = [
    ['EdDSA', { algorithms: ['EdDSA'] }, ['algorithms'], 'eu'],
    ['EdDSA under HAIP alone', { algorithms: ['EdDSA'] }, [], 'haip'],
    ['agreed algorithms of the ECCG', { algorithms: ['ES256', 'ES384'] }, [], 'eu'],
    ['unset properties', {}, [], 'eu'],
    ['issuers that are not registered', { registrationCert: null }, ['registrationCert'], 'eu'],
    ['issuers that are not registered, under HAIP alone', { registrationCert: null }, [], 'haip'],
    ['wallets without an attestation', { walletClients: [{ client_id: 'w', jwks: { keys: [newKey().jwk] } }] }, ['walletClients'], 'eu'],
    ['registered wallets under HAIP alone', { walletClients: [{ client_id: 'w', jwks: { keys: [newKey().jwk] } }] }, [], 'haip'],
  ];
  for (const [description, changes, members, profile] of issuances) {
    it(`${members.length === 0 ? 'allows' : 'rejects'} ${description}`, () => {
      const body = { display, walletProviderTrustLists: LISTS, registrationCert: CERTIFICATE, ...changes };
      const issuance = IssuanceConfigurationBody.parse(body);
      expect(rejectedProperties(findIssuanceProblems(issuance, profile), profile)).to.deep.equal(members);
    });
  }

  it('accepts signatures by agreed algorithms only, also in stored configurations', () => {
    const problemsOf = (algorithms: unknown, profile: Profile | null) =>
      effectiveIssuance(IssuanceConfigurationBody.parse({ display, algorithms }), profile).algorithms;
    expect(problemsOf(undefined, 'eu')).to.deep.equal(['ES256', 'ES384', 'ES512']);
    expect(problemsOf(['EdDSA', 'ES384'], 'eu')).to.deep.equal(['ES384']);
    expect(problemsOf(['EdDSA', 'ES384'], 'haip')).to.deep.equal(['EdDSA', 'ES384']);
    expect(problemsOf(undefined, 'haip')).to.equal(undefined);
  });

  const credential = (changes: object = {}) =>
    CredentialConfigurationBody.parse({
      id: 'pid',
      config: { format: 'dc+sd-jwt', display },
      statusManagement: true,
      credentialReusePolicy: POLICY,
      ...changes,
    });
  const attested = (changes: object, profile: Profile | null = 'eu') =>
    effectiveCredential(credential(changes), profile).keyAttestationsRequired;

  it('requires attested keys for bound credentials unless the configuration says otherwise', () => {
    for (const unset of [undefined, null]) {
      expect(attested({ keyAttestationsRequired: unset })).to.deep.equal({});
      expect(attested({ keyAttestationsRequired: unset }, 'haip')).to.equal(unset);
      expect(attested({ keyAttestationsRequired: unset }, null)).to.equal(unset);
    }
    expect(attested({ keyAttestationsRequired: { key_storage: ['iso_18045_high'] } })).to.deep.equal({ key_storage: ['iso_18045_high'] });
    expect(attested(UNBOUND)).to.equal(undefined);
  });

  it('requires both types of proof, which are offered if attestations are required', () => {
    for (const keyAttestationsRequired of [{}, undefined]) {
      const jwtFirst = credential({ keyAttestationsRequired, proofTypes: ['jwt'] });
      expect(rejectedProperties(findCredentialProblems(jwtFirst, 'eu'), 'eu')).to.include('proofTypes');
      expect(rejectedProperties(findCredentialProblems(jwtFirst, 'haip'), 'haip')).to.deep.equal([]);
    }
    const bothTypes = credential({ proofTypes: ['attestation', 'jwt'] });
    for (const valid of [bothTypes, credential(), credential(UNBOUND)])
      expect(rejectedProperties(findCredentialProblems(valid, 'eu'), 'eu')).to.not.include('proofTypes');
  });

  it('warns of keys without an attestation under HAIP alone, and names the sections', () => {
    const problemsOf = (profile: Profile | null) =>
      warningsOf(findCredentialProblems(credential(), profile), profile).find(({ member }) => member === 'keyAttestationsRequired');
    expect(problemsOf('haip')?.rule).to.equal('HAIP 1.0 section 4.5.1, EUDI TS3 1.5 section 2.2');
    expect([problemsOf(null), problemsOf('eu')]).to.deep.equal([undefined, undefined]);
  });

  it('requires a reuse policy', () => {
    const unset = credential({ credentialReusePolicy: undefined });
    expect(rejectedProperties(findCredentialProblems(unset, 'eu'), 'eu')).to.deep.equal(['credentialReusePolicy']);
    expect(rejectedProperties(findCredentialProblems(unset, 'haip'), 'haip')).to.deep.equal([]);
    expect(rejectedProperties(findCredentialProblems(credential(), 'eu'), 'eu')).to.deep.equal([]);
    expect(rejectedProperties(findCredentialProblems(credential(UNBOUND), 'eu'), 'eu')).to.deep.equal([]);
  });

  it('requires agreed algorithms for keys', () => {
    const chain = aKeyChain('acme' as never, 'one');
    const { handle } = chain.active.key;
    const signing = (algorithm: string) =>
      ({ ...chain, active: { ...chain.active, key: { ...chain.active.key, handle: { ...handle, algorithm } } } }) as never;
    expect(rejectedProperties(findKeyChainProblems(signing('EdDSA'), 'eu'), 'eu')).to.include('algorithm');
    expect(rejectedProperties(findKeyChainProblems(signing('EdDSA'), 'haip'), 'haip')).to.not.include('algorithm');
    expect(rejectedProperties(findKeyChainProblems(signing('ES384'), 'eu'), 'eu')).to.not.include('algorithm');
  });

  it('requires the registered values in requests', () => {
    const query = { credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid'] } }] };
    const problemsOf = (registrationCert: unknown, profile: Profile) => {
      const body = PresentationConfigurationBody.parse({ id: 'age', dcql_query: query, registrationCert });
      return rejectedProperties(findPresentationProblems(body, profile), profile);
    };
    for (const unsetValue of [undefined, null]) expect(problemsOf(unsetValue, 'eu')).to.deep.equal(['registrationCert']);
    expect(problemsOf(undefined, 'haip')).to.deep.equal([]);
    expect(problemsOf({ body: {} }, 'eu')).to.deep.equal([]);
    const beside = { ...QUERIES, registrationCert: { body: {} }, attached: [OTHER, CERTIFIED] };
    const twice = PresentationConfigurationBody.parse(beside);
    expect(rejectedProperties(findPresentationProblems(twice, 'eu'), 'eu')).to.deep.equal(['attached.1']);
    expect(rejectedProperties(findPresentationProblems(twice, 'haip'), 'haip')).to.deep.equal([]);
  });

  it('allows authorities as anchors, and no pinned certificate', async () => {
    const authority = pem(await certify({ name: 'Root', ca: true }));
    const problemsOf = (pin: boolean) => {
      const trustAnchors = [{ certificate: authority, ...(pin && { pin }) }];
      const body = PresentationConfigurationBody.parse({ ...QUERIES, registrationCert: CERTIFICATE, trustAnchors });
      return rejectedProperties(findPresentationProblems(body, 'eu'), 'eu');
    };
    expect(problemsOf(true)).to.deep.equal(['trustAnchors.0.certificate']);
    expect(problemsOf(false)).to.deep.equal([]);
  });
});
