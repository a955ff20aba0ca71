import { expect } from 'chai';
import { CredentialConfigurationBody, effectiveCredential } from '../../../domain/issuance/configuration.ts';
import { credentialFindings } from '../../../domain/issuance/credential-findings.ts';
import {
  effectiveIssuance,
  IssuanceConfigurationBody,
} from '../../../domain/issuance/issuance-configuration.ts';
import { issuanceFindings } from '../../../domain/issuance/issuance-findings.ts';
import { keyChainFindings } from '../../../domain/keys/key-chain-findings.ts';
import {
  contradictions,
  type Finding,
  holdsTo,
  type Profile,
  warningsOf,
} from '../../../domain/shared/finding.ts';
import { PresentationConfigurationBody } from '../../../domain/verification/configuration.ts';
import { presentationFindings } from '../../../domain/verification/presentation-findings.ts';
import { aKeyChain } from '../../contract/store/builders.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { certify, pem } from '../../support/test-certificates.ts';

const display = [{ name: 'Acme', locale: 'en' }];
const ONCE = { details: ['once_only'], batch_size: 10, reissue_trigger_unused: 2 };
const POLICY = { id: 'arf_annex_ii', options: [ONCE] };
const CERTIFICATE = { jwt: 'a.b.c' };
const LISTS = ['https://lists.example/lote'];

/** Members that a profile refuses, with the rules. */
const refused = (findings: readonly Finding[], profile: Profile) =>
  contradictions(findings, profile).map(({ path }) => path);

const QUERIES = {
  id: 'age',
  dcql_query: { credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid'] } }] },
};
const OTHER = { format: 'other', data: { a: 1 } };
const CERTIFIED = { format: 'registration_cert', data: { a: 1 } };
const UNBOUND = { keyBinding: false, credentialReusePolicy: null };

describe('The profile of the European wallet', () => {
  it('has all rules of HAIP, and not the other way round', () => {
    expect([holdsTo('eu', 'haip'), holdsTo('eu', 'eu'), holdsTo('haip', 'haip')]).to.deep.equal([
      true,
      true,
      true,
    ]);
    expect([holdsTo('haip', 'eu'), holdsTo(null, 'haip'), holdsTo(null, 'eu')]).to.deep.equal([
      false,
      false,
      false,
    ]);
    const issuance = IssuanceConfigurationBody.parse({
      ...{ display, registrationCert: CERTIFICATE, dPopRequired: false },
    });
    expect(refused(issuanceFindings(issuance, 'eu'), 'eu')).to.deep.equal(['dPopRequired']);
  });

  it('names the rule, the member and what to change', () => {
    const issuance = IssuanceConfigurationBody.parse({ display, algorithms: ['ES256', 'EdDSA'] });
    const [fault] = contradictions(issuanceFindings(issuance, 'eu'), 'eu');
    expect(fault).to.deep.equal({
      path: 'algorithms',
      message:
        'profile eu (ARF 3.0 OIA_03 and WUA_04, ECCG Agreed Cryptographic Mechanisms 2): signatures count by EdDSA, ' +
        'which is not agreed to; leave EdDSA out',
    });
  });

  const issuances: [string, object, string[], Profile][] = [
    ['EdDSA', { algorithms: ['EdDSA'] }, ['algorithms'], 'eu'],
    ['EdDSA under HAIP alone', { algorithms: ['EdDSA'] }, [], 'haip'],
    ['what the ECCG agreed to', { algorithms: ['ES256', 'ES384'] }, [], 'eu'],
    ['what is left open', {}, [], 'eu'],
    ['issuers that are not registered', { registrationCert: null }, ['registrationCert'], 'eu'],
    ['issuers that are not registered, under HAIP alone', { registrationCert: null }, [], 'haip'],
    [
      'wallets without an attestation',
      { walletClients: [{ client_id: 'w', jwks: { keys: [newKey().jwk] } }] },
      ['walletClients'],
      'eu',
    ],
    [
      'registered wallets under HAIP alone',
      { walletClients: [{ client_id: 'w', jwks: { keys: [newKey().jwk] } }] },
      [],
      'haip',
    ],
  ];
  for (const [what, changes, members, profile] of issuances) {
    it(`${members.length === 0 ? 'allows' : 'refuses'} ${what}`, () => {
      const body = { display, walletProviderTrustLists: LISTS, registrationCert: CERTIFICATE, ...changes };
      const issuance = IssuanceConfigurationBody.parse(body);
      expect(refused(issuanceFindings(issuance, profile), profile)).to.deep.equal(members);
    });
  }

  it('counts signatures by agreed algorithms alone, also of what was stored before', () => {
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

  it('takes attested keys wherever there are keys, as far as nobody said which', () => {
    for (const open of [undefined, null]) {
      expect(attested({ keyAttestationsRequired: open })).to.deep.equal({});
      expect(attested({ keyAttestationsRequired: open }, 'haip')).to.equal(open);
      expect(attested({ keyAttestationsRequired: open }, null)).to.equal(open);
    }
    expect(attested({ keyAttestationsRequired: { key_storage: ['iso_18045_high'] } })).to.deep.equal({
      key_storage: ['iso_18045_high'],
    });
    expect(attested(UNBOUND)).to.equal(undefined);
  });

  it('wants both types of proof, which are offered where attestations are demanded', () => {
    for (const keyAttestationsRequired of [{}, undefined]) {
      const one = credential({ keyAttestationsRequired, proofTypes: ['jwt'] });
      expect(refused(credentialFindings(one, 'eu'), 'eu')).to.include('proofTypes');
      expect(refused(credentialFindings(one, 'haip'), 'haip')).to.deep.equal([]);
    }
    const both = credential({ proofTypes: ['attestation', 'jwt'] });
    for (const fine of [both, credential(), credential(UNBOUND)])
      expect(refused(credentialFindings(fine, 'eu'), 'eu')).to.not.include('proofTypes');
  });

  it('warns of keys without an attestation under HAIP alone, and names the sections', () => {
    const of = (profile: Profile | null) =>
      warningsOf(credentialFindings(credential(), profile), profile).find(
        ({ member }) => member === 'keyAttestationsRequired',
      );
    expect(of('haip')?.rule).to.equal('HAIP 1.0 section 4.5.1, EUDI TS3 1.5 section 2.2');
    expect([of(null), of('eu')]).to.deep.equal([undefined, undefined]);
  });

  it('demands to know how often a copy is presented', () => {
    const open = credential({ credentialReusePolicy: undefined });
    expect(refused(credentialFindings(open, 'eu'), 'eu')).to.deep.equal(['credentialReusePolicy']);
    expect(refused(credentialFindings(open, 'haip'), 'haip')).to.deep.equal([]);
    expect(refused(credentialFindings(credential(), 'eu'), 'eu')).to.deep.equal([]);
    expect(refused(credentialFindings(credential(UNBOUND), 'eu'), 'eu')).to.deep.equal([]);
  });

  it('has keys sign by agreed algorithms', () => {
    const chain = aKeyChain('acme' as never, 'one');
    const { handle } = chain.active.key;
    const signing = (algorithm: string) =>
      ({
        ...chain,
        active: { ...chain.active, key: { ...chain.active.key, handle: { ...handle, algorithm } } },
      }) as never;
    expect(refused(keyChainFindings(signing('EdDSA'), 'eu'), 'eu')).to.include('algorithm');
    expect(refused(keyChainFindings(signing('EdDSA'), 'haip'), 'haip')).to.not.include('algorithm');
    expect(refused(keyChainFindings(signing('ES384'), 'eu'), 'eu')).to.not.include('algorithm');
  });

  it('has requests say what was registered', () => {
    const query = { credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid'] } }] };
    const of = (registrationCert: unknown, profile: Profile) => {
      const body = PresentationConfigurationBody.parse({ id: 'age', dcql_query: query, registrationCert });
      return refused(presentationFindings(body, profile), profile);
    };
    for (const none of [undefined, null]) expect(of(none, 'eu')).to.deep.equal(['registrationCert']);
    expect(of(undefined, 'haip')).to.deep.equal([]);
    expect(of({ body: {} }, 'eu')).to.deep.equal([]);
    const beside = { ...QUERIES, registrationCert: { body: {} }, attached: [OTHER, CERTIFIED] };
    const twice = PresentationConfigurationBody.parse(beside);
    expect(refused(presentationFindings(twice, 'eu'), 'eu')).to.deep.equal(['attached.1']);
    expect(refused(presentationFindings(twice, 'haip'), 'haip')).to.deep.equal([]);
  });

  it('trusts authorities, and no pinned certificate', async () => {
    const authority = pem(await certify({ name: 'Root', ca: true }));
    const of = (pin: boolean) => {
      const trustAnchors = [{ certificate: authority, ...(pin && { pin }) }];
      const body = PresentationConfigurationBody.parse({
        ...QUERIES,
        registrationCert: CERTIFICATE,
        trustAnchors,
      });
      return refused(presentationFindings(body, 'eu'), 'eu');
    };
    expect(of(true)).to.deep.equal(['trustAnchors.0.certificate']);
    expect(of(false)).to.deep.equal([]);
  });
});
