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
/** Nothing is found in these. */
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
/** Of a licence, where not any text will do. */
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
  const refused = (findings: readonly Finding[]) => members(findings.filter(({ refusedBy = [] }) => refusedBy.includes('haip')));

  const ofIssuance = (changes: object, profile: Profile | null = null) =>
    findIssuanceProblems(IssuanceConfigurationBody.parse({ ...ISSUANCE, ...changes }), profile);
  const ISSUANCES: [string, object, string, { haip: boolean }][] = [
    ['wallets without an attestation', { walletAttestationRequired: false }, 'walletAttestationRequired', { haip: true }],
    ['no trusted wallet provider', { walletClients: [] }, 'walletProviderTrustLists', { haip: false }],
    ['bearer tokens', { dPopRequired: false }, 'dPopRequired', { haip: true }],
    ['proofs without nonces', { dPopNonce: 'off' }, 'dPopNonce', { haip: true }],
    ['nonces that wallets may leave out', { dPopNonce: 'optional' }, 'dPopNonce', { haip: true }],
    ['proofs of wallet attestations without challenges', { attestationChallenge: 'optional' }, 'attestationChallenge', { haip: true }],
    ['external servers', { authServers: ['https://as.example'] }, 'authServers', { haip: false }],
    [
      'bearer tokens of the chained server',
      { chainedAs: { requireDPoP: false, upstream: { issuer: 'https://login.example', clientId: 'c' } } },
      'chainedAs.requireDPoP',
      { haip: true },
    ],
    [
      'logins that send credentials anywhere',
      { chainedAs: { confirmUnverifiedWallets: false, upstream: { issuer: 'https://login.example', clientId: 'c' } } },
      'chainedAs.confirmUnverifiedWallets',
      { haip: false },
    ],
  ];
  it('of an issuer: none about attestations if a list is trusted or attestations are optional', () => {
    const walletProviderTrustLists = ['https://lists.example/lote'];
    const signers = { walletProviderTrustListCertificates: [] };
    expect(ofIssuance({ walletClients: [], walletProviderTrustLists, ...signers })).to.deep.equal([]);
    const open = { walletClients: [], walletAttestationRequired: false };
    expect(members(ofIssuance(open))).to.deep.equal(['walletAttestationRequired']);
    expect(warningsOf(ofIssuance(open), null)).to.deep.equal([]);
  });

  for (const [what, changes, member, { haip }] of ISSUANCES) {
    it(`of an issuer: ${what}`, () => {
      expect(members(ofIssuance(changes))).to.deep.equal([member]);
      expect(refused(ofIssuance(changes))).to.deep.equal(haip ? [member] : []);
    });
  }

  it('of an issuer: none for one that conforms to HAIP, nor for values that its profile sets', () => {
    expect(ofIssuance({})).to.deep.equal([]);
    for (const none of [null, undefined]) {
      const open = { walletAttestationRequired: none, dPopNonce: none };
      expect(members(ofIssuance(open))).to.deep.equal(['walletAttestationRequired', 'dPopNonce']);
      // What is left open contradicts nothing.
      expect(refused(ofIssuance(open))).to.deep.equal([]);
      expect(ofIssuance(open, 'haip')).to.deep.equal([]);
    }
  });

  it('of a tenant that adopts a profile: wallets that its issuer will exclude', () => {
    const stored = (changes: object) => ({
      ...IssuanceConfigurationBody.parse({ ...ISSUANCE, walletClients: [], ...changes }),
      ...{ id: 'default' as const, createdAt: new Date(0), updatedAt: new Date(0) },
    });
    for (const issuance of [undefined, stored({ walletAttestationRequired: null })]) {
      const [found, ...more] = findProfileProblems('haip', issuance);
      expect([found?.member, found?.concerns, more]).to.deep.equal(['profile', 'every wallet', []]);
      expect(findProfileProblems(null, issuance)).to.deep.equal([]);
    }
    expect(findProfileProblems('haip', stored({ walletClients: [CLIENT] }))).to.deep.equal([]);
  });

  const ofCredential = (body: object, profile: Profile | null = null) =>
    findCredentialProblems(CredentialConfigurationBody.parse(body), profile);
  const CREDENTIALS: [string, object, string][] = [
    ['unbound', { keyBinding: false, keyAttestationsRequired: null, credentialReusePolicy: null }, 'keyBinding'],
    ['presented any number of times', { credentialReusePolicy: null }, 'credentialReusePolicy'],
    ['without key attestations', { keyAttestationsRequired: null }, 'keyAttestationsRequired'],
    ['without a word on key attestations', { keyAttestationsRequired: undefined }, 'keyAttestationsRequired'],
    ['without a name', { config: { format: 'dc+sd-jwt' } }, 'config.display'],
    ['without an end', { lifeTime: undefined }, 'statusManagement'],
    ['that another wallet takes away', { oneActiveSet: true, statusManagement: true }, 'oneActiveSet'],
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
    ['one type of proof alone', { proofTypes: ['attestation'] }, 'proofTypes'],
    ['for ever', { lifeTime: null }, 'statusManagement'],
    [
      'so short that copies look alike by their end',
      { lifeTime: 1209, credentialReusePolicy: { id: 'arf_annex_ii', options: [LIMITED] } },
      'lifeTime',
    ],
    ['all visible', { disclosureFrame: null }, 'disclosureFrame'],
    ['a display in no language', { config: { format: 'dc+sd-jwt', display: [{ name: 'Acme' }] } }, 'config.display.0.locale'],
  ];
  for (const [what, changes, member] of CREDENTIALS) {
    it(`of a credential: ${what}`, () => {
      expect(members(ofCredential({ ...CREDENTIAL, ...changes }))).to.deep.equal([member]);
    });
  }

  it('of a credential: none for one with expiry, selective disclosure and key binding', () => {
    expect(ofCredential(CREDENTIAL)).to.deep.equal([]);
    expect(ofCredential({ ...CREDENTIAL, lifeTime: 3600 })).to.deep.equal([]);
    expect(members(ofCredential({ ...CREDENTIAL, lifeTime: 3599 }))).to.deep.equal(['lifeTime']);
    expect(ofCredential({ ...CREDENTIAL, lifeTime: null, statusManagement: true })).to.deep.equal([]);
    const elsewhere = { ...CREDENTIAL, vct: 'urn:pid', config: { format: 'dc+sd-jwt', display: [{ name: 'Acme' }] } };
    expect(ofCredential(elsewhere)).to.deep.equal([]);
    expect(ofCredential({ ...elsewhere, vct: { vct: 'urn:pid', name: 'Acme' } })).to.deep.equal([]);
  });

  it('of a driving licence: missing elements, if it has any', () => {
    expect(ofCredential(LICENCE)).to.deep.equal([]);
    const [flat, ...none] = ofCredential({ ...LICENCE, claims: { family_name: 'Lovelace' } });
    expect(none).to.deep.equal([]);
    expect(flat?.member).to.equal('claims');
    expect(flat?.message).to.include('given_name, birth_date').and.not.include('family_name');
    const claimsByNamespace = { 'org.iso.18013.5.1': { family_name: 'Lovelace' } };
    const held = { ...LICENCE, config: { ...LICENCE.config, claimsByNamespace } };
    for (const claims of [null, undefined]) {
      expect(members(ofCredential({ ...held, claims }))).to.deep.equal(['config.claimsByNamespace']);
    }
    const lacking = flat?.message.match(/needs (.*)/)?.[1]?.split(', ') ?? [];
    const whole = Object.fromEntries(['family_name', ...lacking].map((name) => [name, VALUES[name] ?? 'x']));
    expect(ofCredential({ ...LICENCE, claims: whole }), 'nothing where it lacks none').to.deep.equal([]);
    const other = { ...LICENCE, config: { ...LICENCE.config, docType: 'com.acme.card' }, claims: { a: 1 } };
    expect(ofCredential(other)).to.deep.equal([]);
  });

  const ofPresentation = (changes: object, profile: Profile | null = null) =>
    findPresentationProblems(PresentationConfigurationBody.parse({ ...PRESENTATION, ...changes }), profile);
  const waiving = { credentials: [{ ...QUERY, require_cryptographic_holder_binding: false }] };
  describe('for a key identifier of a trusted authority', () => {
    const membersOf = async (value: (base64url: string) => string, others: object[] = []) => {
      const root = await certify({ name: 'Root', ca: true });
      const read = parseCertificate(Buffer.from(root.certificate, 'base64'));
      const trusted_authorities = [{ type: 'aki', values: [value(read?.subjectKeyId ?? '')] }];
      return ofPresentation({
        trustAnchors: [{ certificate: pem(root) }, ...others],
        dcql_query: { credentials: [{ ...QUERY, trusted_authorities }] },
      })
        .map(({ member }) => member)
        .filter((member) => member.includes('trusted_authorities'));
    };
    const WARNING = ['dcql_query.credentials.0.trusted_authorities.0'];
    const asHex = (text: string) => Buffer.from(text, 'base64url').toString('hex');

    it('are absent if an anchor has it', async () => {
      expect(await membersOf((text) => text)).to.deep.equal([]);
    });
    it('are present if no anchor has it', async () => {
      expect(await membersOf(() => Buffer.alloc(20, 9).toString('base64url'))).to.deep.equal(WARNING);
    });
    it('are present in hexadecimal, also if anchors come from a key chain', async () => {
      expect(await membersOf(asHex)).to.deep.equal(WARNING);
      expect(await membersOf(asHex, [{ keyChainId: 'signing' }])).to.deep.equal(WARNING);
    });
  });

  const PRESENTATIONS: [string, object, string, { haip: boolean }][] = [
    ['answers in the clear', { responseMode: 'direct_post' }, 'responseMode', { haip: true }],
    ['a name by host', { clientIdPrefix: 'x509_san_dns' }, 'clientIdPrefix', { haip: true }],
    ['a browser that stays away', { redirectUri: null }, 'redirectUri', { haip: false }],
    ['a browser that is sent nowhere', { redirectUri: undefined }, 'redirectUri', { haip: false }],
    ['copies of credentials', { dcql_query: waiving }, 'dcql_query.credentials.0.require_cryptographic_holder_binding', { haip: true }],
    [
      'a claim that no set of claims names',
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
      'transactions that an mdoc confirms',
      {
        dcql_query: { credentials: [MDOC_QUERY] },
        transaction_data: [{ type: 'pay', credential_ids: ['mdl'] }],
        transactionDataElements: { pay: { namespace: 'n', element: 'e' } },
      },
      'transaction_data.0.credential_ids',
      { haip: false },
    ],
  ];
  for (const [what, changes, member, { haip }] of PRESENTATIONS) {
    it(`of a request: ${what}`, () => {
      expect(members(ofPresentation(changes))).to.deep.equal([member]);
      expect(refused(ofPresentation(changes))).to.deep.equal(haip ? [member] : []);
    });
  }

  it('of a request: unsigned for HAIP, and for all tenants a link that is too long for a QR code', () => {
    const findings = ofPresentation({ clientIdPrefix: 'redirect_uri' });
    expect(members(findings)).to.deep.equal(['clientIdPrefix', 'clientIdPrefix']);
    expect(refused(findings)).to.deep.equal(['clientIdPrefix']);
    const [link, ...others] = warningsOf(findings, null);
    expect(others).to.deep.equal([]);
    expect(link?.rule).to.equal('OpenID4VP 1.0 section 3.2');
    expect(link?.message).to.match(/^the link has about \d{4} characters; above 1200 no QR code is made/);
  });

  it('of a request: none for claims in a set, or without sets', () => {
    const claims = [{ id: 'name', path: ['name'] }];
    for (const more of [{ claims }, { claims, claim_sets: [['name']] }, {}])
      expect(ofPresentation({ dcql_query: { credentials: [{ ...QUERY, ...more }] } })).to.deep.equal([]);
  });

  it('of a request: none for transactions that an SD-JWT VC confirms', () => {
    const transaction_data = [{ type: 'pay', credential_ids: ['pid'] }];
    expect(ofPresentation({ transaction_data })).to.deep.equal([]);
  });

  it('of a request: an issuer that is trusted by its own certificate, but not one by its authority', async () => {
    expect(ofPresentation({})).to.deep.equal([]);
    const root = await certify({ name: 'Root', ca: true });
    const leaf = await certify({ name: 'Leaf', by: root });
    const junk = writePemCertificates([Buffer.from('junk').toString('base64')]);
    const anchors = [pem(root), pem(leaf), 'no certificate', junk].map((certificate) => ({ certificate }));
    expect(refused(ofPresentation({ trustAnchors: anchors }))).to.deep.equal(['trustAnchors.1.certificate']);
    const pins = [false, true].map((pin) => ({ certificate: pem(root), pin }));
    expect(refused(ofPresentation({ trustAnchors: pins }))).to.deep.equal(['trustAnchors.1.certificate']);
  });

  it('of status lists: those with a long cache time, and those with few entries', () => {
    const of = (statusListConfig: Parameters<typeof findStatusListProblems>[0]['statusListConfig']) =>
      members(findStatusListProblems({ statusListConfig }));
    expect(of(null)).to.deep.equal([]);
    for (const open of [{}, { ttl: null, capacity: null }]) expect(of(open)).to.deep.equal([]);
    expect(of({ ttl: 86_400, capacity: 10_000 })).to.deep.equal([]);
    expect(of({ ttl: 86_401, capacity: 9_999 })).to.deep.equal(['ttl', 'capacity']);
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
  /** Members that a profile refuses, with the rules. */
  const refused = (findings: readonly Finding[], profile: Profile) => profileViolations(findings, profile).map(({ path }) => path);

  it('includes all rules of HAIP, and HAIP does not include its rules', () => {
    expect([includesProfile('eu', 'haip'), includesProfile('eu', 'eu'), includesProfile('haip', 'haip')]).to.deep.equal([true, true, true]);
    expect([includesProfile('haip', 'eu'), includesProfile(null, 'haip'), includesProfile(null, 'eu')]).to.deep.equal([
      false,
      false,
      false,
    ]);
    const issuance = IssuanceConfigurationBody.parse({ ...{ display, registrationCert: CERTIFICATE, dPopRequired: false } });
    expect(refused(findIssuanceProblems(issuance, 'eu'), 'eu')).to.deep.equal(['dPopRequired']);
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
    ['what the ECCG agreed to', { algorithms: ['ES256', 'ES384'] }, [], 'eu'],
    ['what is left open', {}, [], 'eu'],
    ['issuers that are not registered', { registrationCert: null }, ['registrationCert'], 'eu'],
    ['issuers that are not registered, under HAIP alone', { registrationCert: null }, [], 'haip'],
    ['wallets without an attestation', { walletClients: [{ client_id: 'w', jwks: { keys: [newKey().jwk] } }] }, ['walletClients'], 'eu'],
    ['registered wallets under HAIP alone', { walletClients: [{ client_id: 'w', jwks: { keys: [newKey().jwk] } }] }, [], 'haip'],
  ];
  for (const [what, changes, members, profile] of issuances) {
    it(`${members.length === 0 ? 'allows' : 'rejects'} ${what}`, () => {
      const body = { display, walletProviderTrustLists: LISTS, registrationCert: CERTIFICATE, ...changes };
      const issuance = IssuanceConfigurationBody.parse(body);
      expect(refused(findIssuanceProblems(issuance, profile), profile)).to.deep.equal(members);
    });
  }

  it('accepts signatures by agreed algorithms only, also in stored configurations', () => {
    const of = (algorithms: unknown, profile: Profile | null) =>
      effectiveIssuance(IssuanceConfigurationBody.parse({ display, algorithms }), profile).algorithms;
    expect(of(undefined, 'eu')).to.deep.equal(['ES256', 'ES384', 'ES512']);
    expect(of(['EdDSA', 'ES384'], 'eu')).to.deep.equal(['ES384']);
    expect(of(['EdDSA', 'ES384'], 'haip')).to.deep.equal(['EdDSA', 'ES384']);
    expect(of(undefined, 'haip')).to.equal(undefined);
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
    for (const open of [undefined, null]) {
      expect(attested({ keyAttestationsRequired: open })).to.deep.equal({});
      expect(attested({ keyAttestationsRequired: open }, 'haip')).to.equal(open);
      expect(attested({ keyAttestationsRequired: open }, null)).to.equal(open);
    }
    expect(attested({ keyAttestationsRequired: { key_storage: ['iso_18045_high'] } })).to.deep.equal({ key_storage: ['iso_18045_high'] });
    expect(attested(UNBOUND)).to.equal(undefined);
  });

  it('requires both types of proof, which are offered if attestations are required', () => {
    for (const keyAttestationsRequired of [{}, undefined]) {
      const one = credential({ keyAttestationsRequired, proofTypes: ['jwt'] });
      expect(refused(findCredentialProblems(one, 'eu'), 'eu')).to.include('proofTypes');
      expect(refused(findCredentialProblems(one, 'haip'), 'haip')).to.deep.equal([]);
    }
    const both = credential({ proofTypes: ['attestation', 'jwt'] });
    for (const fine of [both, credential(), credential(UNBOUND)])
      expect(refused(findCredentialProblems(fine, 'eu'), 'eu')).to.not.include('proofTypes');
  });

  it('warns of keys without an attestation under HAIP alone, and names the sections', () => {
    const of = (profile: Profile | null) =>
      warningsOf(findCredentialProblems(credential(), profile), profile).find(({ member }) => member === 'keyAttestationsRequired');
    expect(of('haip')?.rule).to.equal('HAIP 1.0 section 4.5.1, EUDI TS3 1.5 section 2.2');
    expect([of(null), of('eu')]).to.deep.equal([undefined, undefined]);
  });

  it('requires a reuse policy', () => {
    const open = credential({ credentialReusePolicy: undefined });
    expect(refused(findCredentialProblems(open, 'eu'), 'eu')).to.deep.equal(['credentialReusePolicy']);
    expect(refused(findCredentialProblems(open, 'haip'), 'haip')).to.deep.equal([]);
    expect(refused(findCredentialProblems(credential(), 'eu'), 'eu')).to.deep.equal([]);
    expect(refused(findCredentialProblems(credential(UNBOUND), 'eu'), 'eu')).to.deep.equal([]);
  });

  it('requires agreed algorithms for keys', () => {
    const chain = aKeyChain('acme' as never, 'one');
    const { handle } = chain.active.key;
    const signing = (algorithm: string) =>
      ({ ...chain, active: { ...chain.active, key: { ...chain.active.key, handle: { ...handle, algorithm } } } }) as never;
    expect(refused(findKeyChainProblems(signing('EdDSA'), 'eu'), 'eu')).to.include('algorithm');
    expect(refused(findKeyChainProblems(signing('EdDSA'), 'haip'), 'haip')).to.not.include('algorithm');
    expect(refused(findKeyChainProblems(signing('ES384'), 'eu'), 'eu')).to.not.include('algorithm');
  });

  it('requires the registered values in requests', () => {
    const query = { credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid'] } }] };
    const of = (registrationCert: unknown, profile: Profile) => {
      const body = PresentationConfigurationBody.parse({ id: 'age', dcql_query: query, registrationCert });
      return refused(findPresentationProblems(body, profile), profile);
    };
    for (const none of [undefined, null]) expect(of(none, 'eu')).to.deep.equal(['registrationCert']);
    expect(of(undefined, 'haip')).to.deep.equal([]);
    expect(of({ body: {} }, 'eu')).to.deep.equal([]);
    const beside = { ...QUERIES, registrationCert: { body: {} }, attached: [OTHER, CERTIFIED] };
    const twice = PresentationConfigurationBody.parse(beside);
    expect(refused(findPresentationProblems(twice, 'eu'), 'eu')).to.deep.equal(['attached.1']);
    expect(refused(findPresentationProblems(twice, 'haip'), 'haip')).to.deep.equal([]);
  });

  it('allows authorities as anchors, and no pinned certificate', async () => {
    const authority = pem(await certify({ name: 'Root', ca: true }));
    const of = (pin: boolean) => {
      const trustAnchors = [{ certificate: authority, ...(pin && { pin }) }];
      const body = PresentationConfigurationBody.parse({ ...QUERIES, registrationCert: CERTIFICATE, trustAnchors });
      return refused(findPresentationProblems(body, 'eu'), 'eu');
    };
    expect(of(true)).to.deep.equal(['trustAnchors.0.certificate']);
    expect(of(false)).to.deep.equal([]);
  });
});
